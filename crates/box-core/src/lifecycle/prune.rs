//! `prune`: what nobody will use any more goes at once.

use super::expire::{Room, empty, expire};
use crate::agents;
use crate::boxes::{self, BoxRecord, rows};
use crate::caller::Caller;
use crate::host::Host;
use crate::store::StoreError;
use box_api::BoxId;
use box_api::control::{BoxState, KeepWorkspace, PruneDepth, Pruned};
use box_runtime::erase::erase;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Removes what is over its time, or all that is in the trash of the caller; boxes nobody owns; and
/// packs no later box will use.
///
/// # Errors
/// What the store said; what could not be removed is told in the answer.
pub async fn prune(host: &Host, caller: &Caller, depth: PruneDepth) -> Result<Pruned, StoreError> {
    let gone = match depth {
        PruneDepth::Expired => expire(host, || Room::Enough).await?,
        PruneDepth::All => {
            let read = |c: &rusqlite::Connection| rows::trashed(c, KeepWorkspace::Yes);
            let mut all = host.store.read(read).await?;
            all.retain(|record| caller.may(&record.owner));
            empty(host, &all).await
        }
    };
    let mut pruned = Pruned {
        trash: gone.removed,
        left: gone.left,
        ..Pruned::default()
    };
    let records = host.store.read(rows::all).await?;
    if depth == PruneDepth::All {
        remove_strangers(host, &records, &mut pruned).await;
    }
    // A box that runs shows the packs it was started with.
    if records.iter().all(|record| is_still(record.state)) {
        remove_packs(host, &mut pruned).await;
    }
    Ok(pruned)
}

/// Whether nothing of a box runs.
pub(crate) fn is_still(state: BoxState) -> bool {
    match state {
        BoxState::Stopped | BoxState::Failed | BoxState::Trashed => true,
        BoxState::Creating
        | BoxState::Starting
        | BoxState::Running
        | BoxState::Stopping
        | BoxState::Removing
        | BoxState::Restoring => false,
    }
}

/// Boxes an engine has and no row names: `reconcile` stopped them, and now somebody said they may
/// go. A box being made has its row first.
async fn remove_strangers(host: &Host, records: &[BoxRecord], pruned: &mut Pruned) {
    let owned: BTreeSet<BoxId> = records.iter().map(|record| record.id).collect();
    for runtime in host.runtimes.all() {
        let observed = runtime.list().await.unwrap_or_default();
        for stranger in observed.iter().filter(|seen| !owned.contains(&seen.id)) {
            let id = stranger.id;
            // Made since the rows were read.
            if boxes::get(host, id).await.is_ok_and(|row| row.is_none()) {
                let stopped = runtime.stop(&id, Duration::ZERO).await;
                match stopped.and(runtime.remove(&id).await) {
                    Ok(()) => pruned.strangers.push(id),
                    Err(error) => pruned.left.push(boxes::reason(&error)),
                }
            }
        }
    }
}

async fn remove_packs(host: &Host, pruned: &mut Pruned) {
    let data = host.paths.data.clone();
    let kept: BTreeSet<PathBuf> = agents::profiles()
        .filter_map(|profile| agents::installed(profile, &data))
        .collect();
    let top = host.paths.agents();
    let removed = tokio::task::spawn_blocking(move || old_packs(&top, &kept)).await;
    for (pack, removed) in removed.unwrap_or_default() {
        match removed {
            Ok(()) => pruned.packs.push(pack),
            Err(error) => pruned
                .left
                .push(format!("could not remove `{pack}`: {error}")),
        }
    }
}

/// `<agents>/<agent>/<version>`, except those of this build.
fn old_packs(top: &Path, kept: &BTreeSet<PathBuf>) -> Vec<(String, std::io::Result<()>)> {
    let folders = |path: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.map(|entry| entry.path()).collect()
    };
    let versions = folders(top).into_iter().flat_map(|agent| folders(&agent));
    let old = versions.filter(|path| !kept.contains(path));
    old.map(|path| {
        let name = path.strip_prefix(top).unwrap_or(&path);
        (name.display().to_string(), erase(&path))
    })
    .collect()
}
