//! `remove`: name given back → engine → files → row.

use super::claim::{Claim, Wish, claim};
use super::files;
use super::stop::bring_down;
use crate::boxes::{self, BoxRecord, rows};
use crate::credentials;
use crate::host::Host;
use crate::store::{Durability, StoreError};
use box_api::control::BoxState;
use box_api::{BoxId, BoxName};
use box_runtime::{RuntimeError, fault};
use std::sync::Arc;
use std::time::Duration;

const WISH: Wish = Wish {
    from: &[BoxState::Stopped, BoxState::Running, BoxState::Failed],
    into: BoxState::Removing,
    done: &[],
};

/// Why a box was not removed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    #[error("could not remove box `{name}`")]
    Engine {
        name: BoxName,
        #[source]
        source: RuntimeError,
    },
    #[error("box `{name}` is {}", boxes::state_word(*state))]
    Busy { name: BoxName, state: BoxState },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the host is ending")]
    Ending,
}

/// Removes a box and everything in it. Its name is free at once.
///
/// # Errors
/// [`RemoveError`]; the next `reconcile` tries again.
pub async fn remove(host: &Arc<Host>, id: BoxId) -> Result<(), RemoveError> {
    let host = Arc::clone(host);
    let recipe = tokio::spawn(async move { recipe(&host, id).await });
    recipe.await.map_err(|_| RemoveError::Ending)?
}

async fn recipe(host: &Host, id: BoxId) -> Result<(), RemoveError> {
    let record = match claim(host, id, WISH).await? {
        Claim::Taken(record) => record,
        Claim::Already(_) | Claim::Gone => return Ok(()),
        Claim::Busy(record) => {
            return Err(RemoveError::Busy {
                name: record.name,
                state: record.state,
            });
        }
    };
    dismantle(host, &record).await
}

/// Ends and deletes all of a box, its row last.
pub(crate) async fn dismantle(host: &Host, record: &BoxRecord) -> Result<(), RemoveError> {
    let engine = |source| RemoveError::Engine {
        name: record.name.clone(),
        source,
    };
    fault::point("remove.claimed");
    // No grace: nothing it could still write will be kept.
    bring_down(host, record, Duration::ZERO)
        .await
        .map_err(engine)?;
    credentials::logins::forget(host, record.id).await?;
    fault::point("remove.down");
    match host
        .runtime_of(record)
        .map_err(engine)?
        .remove(&record.id)
        .await
    {
        Ok(()) | Err(RuntimeError::NotFound(_)) => {}
        Err(error) => return Err(engine(error)),
    }
    fault::point("remove.erased");
    files::remove(host, &record.id).await;
    fault::point("remove.bare");
    let id = record.id;
    host.store
        .write(Durability::Full, move |transaction| {
            rows::remove(transaction, &id)
        })
        .await?;
    host.changes.tell();
    Ok(())
}
