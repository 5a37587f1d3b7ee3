//! Puts a snapshot's files in the place of a box's.

use super::{BEING_RESTORED, no_snapshot, telling};
use crate::Engine;
use crate::folders::work_folder;
use crate::storage::Cradle;
use box_api::BoxId;
use box_api::snapshot::Label;
use box_runtime::{Progress, RuntimeError, fault};
use std::io;
use std::sync::Arc;

pub(super) async fn restore(
    engine: Arc<Engine>,
    id: BoxId,
    label: Label,
    progress: &dyn Progress,
) -> Result<(), RuntimeError> {
    let turn = engine.turns.take(&id).await;
    if !engine.folders.has(&id) {
        return Err(RuntimeError::NotFound(id));
    }
    if engine.folders.first_process(&id).is_some() {
        return Err(RuntimeError::Refused {
            why: format!("box {id} runs, so its files cannot be replaced"),
            hint: Some("stop it first".to_owned()),
        });
    }
    if !engine.folders.snapshot(&id, &label).is_dir() {
        return Err(no_snapshot(&id, &label));
    }
    telling::work(engine.folders.method(), progress, move |teller| {
        let _turn = turn;
        swap(&engine, &id, &label, teller).map_err(|error| {
            RuntimeError::engine(format!("restore box {id} to the snapshot `{label}`"), error)
        })
    })
    .await
}

fn swap(engine: &Engine, id: &BoxId, label: &Label, teller: &telling::Teller) -> io::Result<()> {
    let folders = &engine.folders;
    let cradle = Cradle::new(&folders.tmp, BEING_RESTORED, folders.method())?;
    teller.copy(&cradle, &folders.snapshot(id, label))?;
    work_folder(&cradle.open()?)?;
    fault::point("restore.copied");
    // The old files go with the cradle.
    cradle.exchange(&folders.of_box(id))
}
