//! Makes a box out of another's files.

use super::about::About;
use super::{BEING_CLONED, list, no_snapshot, telling};
use crate::Engine;
use crate::folders::work_folder;
use crate::storage::layout::UPPER;
use crate::storage::{Cradle, identity, renumber};
use box_api::BoxId;
use box_api::snapshot::SnapshotKind;
use box_runtime::unpack::{Published, Staging};
use box_runtime::{BoxSpec, CloneSource, Progress, RuntimeError, fault};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) async fn clone_from(
    engine: Arc<Engine>,
    source: CloneSource,
    spec: BoxSpec,
    progress: &dyn Progress,
) -> Result<(), RuntimeError> {
    let id = spec.id;
    if source.id == id {
        return Err(RuntimeError::Exists(id));
    }
    // Always in the same order: two clones that go across wait for each other otherwise.
    let (first, second) = (source.id.min(id), source.id.max(id));
    let turns = (
        engine.turns.take(&first).await,
        engine.turns.take(&second).await,
    );
    if !engine.folders.has(&source.id) {
        return Err(RuntimeError::NotFound(source.id));
    }
    if engine.folders.has(&id) {
        return Err(RuntimeError::Exists(id));
    }
    let from = match &source.label {
        None => engine.folders.of_box(&source.id),
        Some(label) => {
            let place = engine.folders.snapshot(&source.id, label);
            if !place.is_dir() {
                return Err(no_snapshot(&source.id, label));
            }
            place
        }
    };
    telling::work(engine.folders.method(), progress, move |teller| {
        let _turns = turns;
        match make(&engine, &source, &from, &id, teller) {
            Ok(Published::Done) => Ok(()),
            Ok(Published::AlreadyThere) => Err(RuntimeError::Exists(id)),
            Err(error) => Err(RuntimeError::engine(
                format!("clone box {} as {id}", source.id),
                error,
            )),
        }
    })
    .await
}

fn make(
    engine: &Engine,
    source: &CloneSource,
    from: &Path,
    id: &BoxId,
    teller: &telling::Teller,
) -> io::Result<Published> {
    let folders = &engine.folders;
    let cradle = copy(engine, source, from, teller)?;
    work_folder(&cradle.open()?)?;
    fault::point("clone.copied");
    if source.label.is_none() {
        let inherited = inherit(engine, source, teller)?;
        // What an earlier clone of this id left: without its box nobody can have been told of it.
        folders.drop_snapshots(id)?;
        inherited.publish(&folders.snapshots_of(id))?;
        fault::point("clone.inherited");
    }
    let published = cradle.publish(&folders.of_box(id))?;
    fault::point("clone.published");
    Ok(published)
}

fn copy(
    engine: &Engine,
    source: &CloneSource,
    from: &Path,
    teller: &telling::Teller,
) -> io::Result<Cradle> {
    let folders = &engine.folders;
    let cradle = Cradle::new(&folders.tmp, BEING_CLONED, folders.method())?;
    teller.copy(&cradle, from)?;
    let upper = cradle.tree().join(UPPER);
    renumber::settle(&upper, source.id_offset)?;
    identity::forget(&upper)?;
    Ok(cradle)
}

/// The source's snapshots, copied.
fn inherit(engine: &Engine, source: &CloneSource, teller: &telling::Teller) -> io::Result<Staging> {
    let folders = &engine.folders;
    let staging = Staging::new(&folders.tmp, BEING_CLONED)?;
    let places: Vec<PathBuf> = list::places(folders, &source.id)?;
    for place in places {
        let about = About::read(&place)?;
        // Its conversations are another box's, whose turns these were.
        if about.kind == SnapshotKind::BeforeTurn {
            continue;
        }
        let cradle = copy(engine, source, &place, teller)?;
        about.write(&cradle.tree())?;
        cradle.place(&staging.path().join(about.label.as_str()))?;
    }
    Ok(staging)
}
