//! Takes a snapshot of a box's files as they are.

use super::about::About;
use super::{BEING_TAKEN, telling};
use crate::Engine;
use crate::folders::private_folder;
use crate::storage::Cradle;
use box_api::BoxId;
use box_api::snapshot::{CopyMethod, Label, SnapshotInfo};
use box_runtime::unpack::Published;
use box_runtime::{Progress, RuntimeError, SnapshotSpec, fault};
use std::io;
use std::sync::Arc;

pub(super) async fn take(
    engine: Arc<Engine>,
    id: BoxId,
    spec: SnapshotSpec,
    progress: &dyn Progress,
) -> Result<SnapshotInfo, RuntimeError> {
    let turn = engine.turns.take(&id).await;
    if !engine.folders.has(&id) {
        return Err(RuntimeError::NotFound(id));
    }
    if engine.folders.snapshot(&id, &spec.label).exists() {
        return Err(label_taken(&id, &spec.label));
    }
    telling::work(engine.folders.method(), progress, move |teller| {
        let _turn = turn;
        let label = spec.label.clone();
        match make(&engine, &id, spec, teller) {
            Ok((info, Published::Done)) => Ok(info),
            Ok((_, Published::AlreadyThere)) => Err(label_taken(&id, &label)),
            Err(error) => Err(RuntimeError::engine(
                format!("take the snapshot `{label}` of box {id}"),
                error,
            )),
        }
    })
    .await
}

fn make(
    engine: &Engine,
    id: &BoxId,
    spec: SnapshotSpec,
    teller: &telling::Teller,
) -> io::Result<(SnapshotInfo, Published)> {
    let folders = &engine.folders;
    let cradle = Cradle::new(&folders.tmp, BEING_TAKEN, folders.method())?;
    let place = folders.snapshot(id, &spec.label);
    let copied = teller.copy(&cradle, &folders.of_box(id))?;
    fault::point("snapshot.copied");
    // A subvolume is copied without looking at its files; `list` measures it when somebody asks.
    let measured = match folders.method() {
        CopyMethod::Subvolume => None,
        CopyMethod::Reflink | CopyMethod::Full => Some(copied.size),
    };
    let about = About {
        label: spec.label,
        kind: spec.kind,
        created_at_ms: spec.at_ms,
        bytes: measured,
    };
    about.write(&cradle.tree())?;
    private_folder(&folders.snapshots_of(id))?;
    let published = cradle.publish(&place)?;
    fault::point("snapshot.published");
    Ok((about.info(), published))
}

fn label_taken(id: &BoxId, label: &Label) -> RuntimeError {
    RuntimeError::Refused {
        why: format!("box {id} has a snapshot `{label}` already"),
        hint: Some("take it under another label, or discard that one first".to_owned()),
    }
}
