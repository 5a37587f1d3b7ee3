//! `rename`: another name, at once. Inside, the host name follows with the next start.

use crate::boxes::{self, BoxRecord, rows};
use crate::host::Host;
use crate::network;
use crate::store::{Durability, StoreError};
use box_api::control::BoxState;
use box_api::{BoxId, BoxName};

/// Why a box keeps its name.
#[derive(Debug, thiserror::Error)]
pub enum RenameError {
    #[error("there is a box `{0}` already")]
    NameTaken(BoxName),
    #[error("the box is gone")]
    Gone,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Gives a box another name. Its id, files, snapshots and threads are keyed otherwise and stay.
///
/// # Errors
/// [`RenameError`]
pub async fn rename(host: &Host, id: BoxId, to: BoxName) -> Result<BoxRecord, RenameError> {
    let wanted = to.clone();
    let renamed = host.store.write(Durability::Full, move |transaction| {
        rows::rename(transaction, &id, &wanted)
    });
    match renamed.await? {
        rows::Renamed::Done => {}
        rows::Renamed::NameTaken => return Err(RenameError::NameTaken(to)),
        rows::Renamed::Gone => return Err(RenameError::Gone),
    }
    host.changes.tell();
    let record = boxes::get(host, id).await?.ok_or(RenameError::Gone)?;
    if record.state == BoxState::Running {
        // The refs a box may write go by its name.
        network::rules::tell(host, vec![id]).await;
    }
    Ok(record)
}
