//! What snapshots a box has, and how one is dropped.

use super::about::About;
use super::no_snapshot;
use crate::Engine;
use crate::folders::Folders;
use crate::storage::layout::COPIED;
use crate::storage::measure::measure;
use crate::storage::walk::FOLDER;
use box_api::BoxId;
use box_api::snapshot::{Label, SnapshotInfo};
use box_runtime::{RuntimeError, fault};
use rustix::fd::AsFd as _;
use rustix::fs::{CWD, Mode, openat};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Oldest first. What was not measured yet is measured now.
pub(super) async fn list(
    engine: Arc<Engine>,
    id: BoxId,
) -> Result<Vec<SnapshotInfo>, RuntimeError> {
    let listed = tokio::task::spawn_blocking(move || read(&engine.folders, &id)).await;
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
        RuntimeError::engine(format!("list the snapshots of box {id}"), error)
    };
    listed
        .map_err(|error| failed(error.into()))?
        .map_err(|error| failed(error.into()))
}

fn read(folders: &Folders, id: &BoxId) -> io::Result<Vec<SnapshotInfo>> {
    let mut snapshots = Vec::new();
    for place in places(folders, id)? {
        match measured(&place) {
            Ok(about) => snapshots.push(about.info()),
            // Discarded meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !place.exists() => {}
            Err(error) => return Err(error),
        }
    }
    snapshots.sort_by(|one, other| {
        let key = |info: &SnapshotInfo| (info.created_at_ms, info.label.clone());
        key(one).cmp(&key(other))
    });
    Ok(snapshots)
}

fn measured(place: &Path) -> io::Result<About> {
    let mut about = About::read(place)?;
    if about.bytes.is_none() {
        let mut bytes = 0;
        for part in COPIED {
            let folder = openat(CWD, place.join(part), FOLDER, Mode::empty())?;
            bytes += measure(folder.as_fd())?;
        }
        about.bytes = Some(bytes);
        about.write(place)?;
    }
    Ok(about)
}

/// Bytes of all snapshots of a box, shared content in full.
pub(crate) fn used_by(folders: &Folders, id: &BoxId) -> io::Result<u64> {
    Ok(read(folders, id)?.iter().map(|info| info.bytes).sum())
}

/// The folders of a box's snapshots.
pub(super) fn places(folders: &Folders, id: &BoxId) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folders.snapshots_of(id)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut places = Vec::new();
    for entry in entries {
        let entry = entry?;
        let label = entry.file_name();
        let is_one = label
            .to_str()
            .is_some_and(|label| Label::parse(label).is_ok());
        places.extend(is_one.then(|| entry.path()));
    }
    Ok(places)
}

/// Gone from the moment it is renamed; what becomes of the rest is nobody's concern.
pub(super) async fn discard(
    engine: Arc<Engine>,
    id: BoxId,
    label: Label,
) -> Result<(), RuntimeError> {
    let turn = engine.turns.take(&id).await;
    let place = engine.folders.snapshot(&id, &label);
    if !place.is_dir() {
        return Err(no_snapshot(&id, &label));
    }
    let named = label.clone();
    let discarded = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        let gone = engine.folders.set_aside(&place)?;
        fault::point("snapshot.discarded");
        gone.erase()
    });
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
        RuntimeError::engine(format!("discard the snapshot `{named}` of box {id}"), error)
    };
    discarded
        .await
        .map_err(|error| failed(error.into()))?
        .map_err(|error| failed(error.into()))
}
