//! `stop`: engine → way out closed → stopped.

use super::claim::{Claim, Wish, claim, settle};
use crate::boxes::{self, BoxRecord};
use crate::host::Host;
use crate::store::StoreError;
use box_api::control::BoxState;
use box_api::{BoxId, BoxName};
use box_runtime::{RuntimeError, fault};
use std::sync::Arc;
use std::time::Duration;

/// How long the processes of a box have between being asked to end and being killed.
pub const STOP_GRACE: Duration = Duration::from_secs(5);

const WISH: Wish = Wish {
    from: &[BoxState::Running, BoxState::Failed],
    into: BoxState::Stopping,
    done: &[BoxState::Stopped],
};

/// Why a box was not stopped.
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    #[error("could not stop box `{name}`")]
    Engine {
        name: BoxName,
        #[source]
        source: RuntimeError,
    },
    #[error("box `{name}` is {}", boxes::state_word(*state))]
    Busy { name: BoxName, state: BoxState },
    #[error("the box is gone")]
    Gone,
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the host is ending")]
    Ending,
}

/// Stops a box. One that is stopped already is left as it is.
///
/// # Errors
/// [`StopError`]; the box is then `failed` and can be stopped again.
pub async fn stop(host: &Arc<Host>, id: BoxId, grace: Duration) -> Result<BoxRecord, StopError> {
    let host = Arc::clone(host);
    let recipe = tokio::spawn(async move { recipe(&host, id, grace, None).await });
    recipe.await.map_err(|_| StopError::Ending)?
}

/// As [`stop`], without anybody asking: the box's row says why.
///
/// # Errors
/// As [`stop`].
pub async fn stop_because(
    host: &Arc<Host>,
    id: BoxId,
    grace: Duration,
    why: String,
) -> Result<BoxRecord, StopError> {
    let host = Arc::clone(host);
    let recipe = tokio::spawn(async move { recipe(&host, id, grace, Some(why)).await });
    recipe.await.map_err(|_| StopError::Ending)?
}

async fn recipe(
    host: &Host,
    id: BoxId,
    grace: Duration,
    why: Option<String>,
) -> Result<BoxRecord, StopError> {
    let mut record = match claim(host, id, WISH).await? {
        Claim::Taken(record) => record,
        Claim::Already(record) => return Ok(record),
        Claim::Gone => return Err(StopError::Gone),
        Claim::Busy(record) => {
            return Err(StopError::Busy {
                name: record.name,
                state: record.state,
            });
        }
    };
    fault::point("stop.claimed");
    if let Err(source) = bring_down(host, &record, grace).await {
        let error = StopError::Engine {
            name: record.name,
            source,
        };
        settle(host, id, BoxState::Failed, Some(boxes::reason(&error))).await?;
        return Err(error);
    }
    fault::point("stop.down");
    settle(host, id, BoxState::Stopped, why.clone()).await?;
    record.state = BoxState::Stopped;
    record.problem = why;
    Ok(record)
}

/// Clears away what a box that ended by itself left outside: its engine has that still. The caller
/// sees to it that nobody starts the box.
pub(crate) async fn clear_after(host: &Host, record: &BoxRecord) {
    let Ok(runtime) = host.runtime_of(record) else {
        return;
    };
    match runtime.stop(&record.id, Duration::ZERO).await {
        Ok(()) | Err(RuntimeError::NotFound(_) | RuntimeError::NotRunning(_)) => {}
        Err(error) => {
            let why = boxes::reason(&error);
            tracing::warn!(id = %record.id, why, "something of a box that ended is left");
        }
    }
}

/// Ends the processes of a box, then its way out.
pub(crate) async fn bring_down(
    host: &Host,
    record: &BoxRecord,
    grace: Duration,
) -> Result<(), RuntimeError> {
    match host.runtime_of(record)?.stop(&record.id, grace).await {
        // Nothing of it is left, so nothing of it runs.
        Ok(()) | Err(RuntimeError::NotFound(_) | RuntimeError::NotRunning(_)) => {}
        Err(error) => return Err(error),
    }
    host.touches.stopped(record.id, host.now_ms()).await;
    if let Err(error) = host.egress.release(record.id).await {
        // It notices by the box's pidfd, and is compared with the rows when it is back.
        tracing::debug!(id = %record.id, %error, "box-egress was not told of the end of a box");
    }
    Ok(())
}
