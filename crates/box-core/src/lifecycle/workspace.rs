//! The workspace a removed box left for the next of its name (D26).

use crate::boxes::{BoxRecord, rows};
use crate::host::Host;
use crate::store::{Durability, StoreError};
use box_runtime::{Progress, fault};
use rustix::fs::{CWD, RenameFlags, renameat_with};

/// Gives a box that was just made the workspace kept for its name, if there is one. Never fatal:
/// what cannot be given stays in the trash.
pub(super) async fn take_over(host: &Host, record: &BoxRecord, progress: &dyn Progress) {
    match swap(host, record).await {
        Ok(None) => {}
        Ok(Some(said)) => progress.note(&said),
        Err(error) => {
            tracing::warn!(id = %record.id, %error, "a kept workspace stays in the trash");
        }
    }
}

async fn swap(host: &Host, record: &BoxRecord) -> Result<Option<String>, StoreError> {
    let (owner, name) = (record.owner, record.name.clone());
    let keeper = host
        .store
        .read(move |connection| rows::keeper_of(connection, &owner, &name));
    let Some(keeper) = keeper.await? else {
        return Ok(None);
    };
    let (name, id) = (&record.name, keeper.id);
    let stays = |why: &str| {
        Some(format!(
            "the workspace kept for `{name}` stays in the trash: {why}; `box undelete {id} --as <name>` brings it back"
        ))
    };
    if keeper.profile != record.profile || keeper.runtime != record.runtime {
        return Ok(stays("it was that of a box of another profile or engine"));
    }
    let places = host.runtime_of(record).ok().and_then(|runtime| {
        Some((
            runtime.workspace(&keeper.id)?,
            runtime.workspace(&record.id)?,
        ))
    });
    let Some((from, to)) = places else {
        return Ok(stays("the engine keeps workspaces elsewhere"));
    };
    // In one step, so that a crash leaves it in one of the two, and both boxes whole.
    let swapped = renameat_with(CWD, &from, CWD, &to, RenameFlags::EXCHANGE);
    if let Err(errno) = swapped {
        return Ok(stays(&errno.to_string()));
    }
    fault::point("workspace.swapped");
    let taken = host.store.write(Durability::Full, move |transaction| {
        rows::workspace_is_taken(transaction, &id)
    });
    taken.await?;
    Ok(Some(format!("box `{name}` has the workspace kept for it")))
}
