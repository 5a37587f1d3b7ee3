//! `restart`: stop, then start.

use super::{StartError, StopError, start, stop};
use crate::boxes::BoxRecord;
use crate::host::Host;
use box_api::BoxId;
use std::sync::Arc;
use std::time::Duration;

/// Why a box was not restarted.
#[derive(Debug, thiserror::Error)]
pub enum RestartError {
    #[error(transparent)]
    Stop(#[from] StopError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("the host is ending")]
    Ending,
}

/// Stops a box if it runs, and starts it.
///
/// # Errors
/// [`RestartError`]
pub async fn restart(
    host: &Arc<Host>,
    id: BoxId,
    grace: Duration,
) -> Result<BoxRecord, RestartError> {
    let host = Arc::clone(host);
    // In one task: whoever asked may go away between the two.
    let recipe = tokio::spawn(async move {
        stop(&host, id, grace).await?;
        Ok(start(&host, id).await?)
    });
    recipe.await.map_err(|_| RestartError::Ending)?
}
