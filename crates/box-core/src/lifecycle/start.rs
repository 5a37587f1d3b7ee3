//! `start`: files → engine → way out → running.

use super::claim::{Claim, Wish, claim, settle};
use super::{FilesError, files, spec_of};
use crate::boxes::{self, BoxRecord};
use crate::host::Host;
use crate::store::StoreError;
use crate::watch;
use box_api::control::BoxState;
use box_api::{BoxId, BoxName};
use box_runtime::{RuntimeError, fault};
use std::sync::Arc;

const WISH: Wish = Wish {
    from: &[BoxState::Stopped, BoxState::Failed],
    into: BoxState::Starting,
    done: &[BoxState::Running],
};

/// Why a box was not started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("could not start box `{name}`")]
    Engine {
        name: BoxName,
        #[source]
        source: RuntimeError,
    },
    #[error("could not write the files of box `{name}`")]
    Files {
        name: BoxName,
        #[source]
        source: FilesError,
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

/// Starts a box. One that runs already is left as it is.
///
/// # Errors
/// [`StartError`]; the box is then `failed` and can be started again.
pub async fn start(host: &Arc<Host>, id: BoxId) -> Result<BoxRecord, StartError> {
    let host = Arc::clone(host);
    let recipe = tokio::spawn(async move { recipe(&host, id).await });
    recipe.await.map_err(|_| StartError::Ending)?
}

async fn recipe(host: &Host, id: BoxId) -> Result<BoxRecord, StartError> {
    let mut record = match claim(host, id, WISH).await? {
        Claim::Taken(record) => record,
        Claim::Already(record) => return wake(host, record).await,
        Claim::Gone => return Err(StartError::Gone),
        Claim::Busy(record) => {
            return Err(StartError::Busy {
                name: record.name,
                state: record.state,
            });
        }
    };
    fault::point("start.claimed");
    if let Err(error) = bring_up(host, &record).await {
        settle(host, id, BoxState::Failed, Some(boxes::reason(&error))).await?;
        return Err(error);
    }
    watch::begin_run(host, id).await?;
    settle(host, id, BoxState::Running, None).await?;
    record.state = BoxState::Running;
    record.problem = None;
    Ok(record)
}

/// It runs already; whoever wants it to run does not want it frozen.
async fn wake(host: &Host, record: BoxRecord) -> Result<BoxRecord, StartError> {
    match watch::awake(host, &record).await {
        Ok(_) => Ok(record),
        Err(source) => Err(StartError::Engine {
            name: record.name,
            source,
        }),
    }
}

async fn bring_up(host: &Host, record: &BoxRecord) -> Result<(), StartError> {
    let engine = |source| StartError::Engine {
        name: record.name.clone(),
        source,
    };
    files::place(host, record)
        .await
        .map_err(|source| StartError::Files {
            name: record.name.clone(),
            source,
        })?;
    host.touches.stopped(record.id, host.now_ms()).await;
    let runtime = host.runtime_of(record).map_err(engine)?;
    let started = runtime
        .start(&spec_of(host, record))
        .await
        .map_err(engine)?;
    fault::point("start.started");
    host.egress.admit(record, started.sockets).await;
    fault::point("start.admitted");
    Ok(())
}
