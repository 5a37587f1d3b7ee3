//! `trash`: name free, placeholders revoked → stopped → kept for a while (D33). And the way back,
//! and the end.

use super::claim::{Still, hold_still, move_state};
use super::remove::{RemoveError, dismantle};
use super::stop::{STOP_GRACE, bring_down};
use crate::boxes::{self, BoxRecord, rows};
use crate::credentials;
use crate::host::Host;
use crate::store::{Durability, StoreError};
use box_api::control::{BoxState, KeepWorkspace};
use box_api::{BoxId, BoxName};
use box_runtime::fault;
use std::sync::Arc;

const LIVE: &[BoxState] = &[BoxState::Stopped, BoxState::Running, BoxState::Failed];

/// Puts a box into the trash. When this answers, its name is free and nothing of it runs.
///
/// # Errors
/// [`RemoveError`]; a box that could not be stopped is in the trash and is stopped by the next
/// `reconcile`.
pub async fn trash(
    host: &Arc<Host>,
    id: BoxId,
    workspace: KeepWorkspace,
) -> Result<(), RemoveError> {
    let host = Arc::clone(host);
    let recipe = tokio::spawn(async move { recipe(&host, id, workspace).await });
    recipe.await.map_err(|_| RemoveError::Ending)?
}

async fn recipe(host: &Host, id: BoxId, workspace: KeepWorkspace) -> Result<(), RemoveError> {
    // Held to the end: whoever takes it out again waits until it is stopped.
    let (_held, record) = match hold_still(host, id, LIVE).await? {
        Still::Held(held, record) => (held, record),
        Still::Gone => return Ok(()),
        Still::Busy(record) => {
            return Err(RemoveError::Busy {
                name: record.name,
                state: record.state,
            });
        }
    };
    let trashing = rows::Trashing {
        at_ms: host.now_ms(),
        workspace,
    };
    let moved = host.store.write(Durability::Full, move |transaction| {
        rows::trash(transaction, &id, trashing)
    });
    let placeholders = moved.await?;
    host.changes.tell();
    fault::point("trash.moved");
    // Worthless from now on, also while the box still ends.
    for placeholder in placeholders {
        if let Err(error) = host.egress.unbind(id, placeholder).await {
            // With the box's way out it goes anyway, and when box-egress is back by the rows.
            tracing::debug!(%id, %error, "a placeholder was not unbound");
        }
    }
    credentials::logins::forget(host, id).await?;
    let down = bring_down(host, &record, STOP_GRACE).await;
    fault::point("trash.down");
    down.map_err(|source| RemoveError::Engine {
        name: record.name,
        source,
    })
}

/// Why a box is not taken out of the trash.
#[derive(Debug, thiserror::Error)]
pub enum UndeleteError {
    #[error("there is no box `{0}` in the trash")]
    Unknown(String),
    #[error("there is a box `{0}` already")]
    NameTaken(BoxName),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Takes a box out of the trash, stopped, under the name it had or another one.
///
/// # Errors
/// [`UndeleteError`]
pub async fn undelete(
    host: &Host,
    record: &BoxRecord,
    name: Option<BoxName>,
) -> Result<BoxRecord, UndeleteError> {
    let gone = || UndeleteError::Unknown(record.name.to_string());
    if !is_in_trash(host, record.id).await? {
        return Err(gone());
    }
    let Still::Held(_held, record) = hold_still(host, record.id, &[BoxState::Trashed]).await?
    else {
        return Err(gone());
    };
    let name = name.unwrap_or_else(|| record.name.clone());
    let (row, wanted, at_ms) = (record.clone(), name.clone(), host.now_ms());
    let back = host.store.write(Durability::Full, move |transaction| {
        rows::undelete(transaction, &row, &wanted, at_ms)
    });
    match back.await? {
        rows::Renamed::Done => {}
        rows::Renamed::NameTaken => return Err(UndeleteError::NameTaken(name)),
        rows::Renamed::Gone => return Err(gone()),
    }
    fault::point("undelete.back");
    host.changes.tell();
    boxes::get(host, record.id).await?.ok_or_else(gone)
}

/// Early, so that nobody waits for a box to come into the trash.
async fn is_in_trash(host: &Host, id: BoxId) -> Result<bool, StoreError> {
    let record = boxes::get(host, id).await?;
    Ok(record.is_some_and(|record| record.state == BoxState::Trashed))
}

/// Removes a box that is in the trash, for good.
///
/// # Errors
/// [`RemoveError`]; the next `reconcile` tries again.
pub(crate) async fn throw_out(host: &Host, id: BoxId) -> Result<(), RemoveError> {
    if !is_in_trash(host, id).await? {
        return Ok(());
    }
    let record = match hold_still(host, id, &[BoxState::Trashed]).await? {
        Still::Held(_held, record) => {
            if !move_state(host, &record, BoxState::Removing).await? {
                return Ok(());
            }
            record
        }
        // It was taken out, or somebody else removes it.
        Still::Gone | Still::Busy(_) => return Ok(()),
    };
    dismantle(host, &record).await
}
