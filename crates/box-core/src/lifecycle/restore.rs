//! `restore`: stopped → a snapshot to come back by → files replaced → started again if it ran.

mod unfinished;

pub use unfinished::finish;

use super::claim::{Claim, Wish, claim, settle};
use super::snapshot::{self, SnapshotError, engine_of, failed, known, take};
use super::start::{StartError, start};
use super::stop::{STOP_GRACE, bring_down};
use crate::boxes::{self, BoxRecord};
use crate::host::Host;
use crate::restore_points;
use box_api::BoxId;
use box_api::control::BoxState;
use box_api::snapshot::{Label, SnapshotInfo, SnapshotKind};
use box_runtime::{Progress, fault};
use std::sync::Arc;

const WISH: Wish = Wish {
    from: snapshot::COPIED_IN,
    into: BoxState::Restoring,
    done: &[],
};

/// Snapshots taken before a restore that a box keeps; older ones go with the next restore.
pub const BEFORE_RESTORE_MAX: usize = 3;

/// Why a box is not as a snapshot has it.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// Its files are the snapshot's.
    #[error(transparent)]
    Start(#[from] StartError),
}

/// Replaces the files of a box by a snapshot's. Answers the box and the label that undoes it.
///
/// # Errors
/// [`RestoreError`]; unless only its start failed, the box has the files it had.
pub async fn restore(
    host: &Arc<Host>,
    id: BoxId,
    label: Label,
    progress: Arc<dyn Progress>,
) -> Result<(BoxRecord, Label), RestoreError> {
    let host = Arc::clone(host);
    let recipe = tokio::spawn(async move { recipe(&host, id, &label, &*progress).await });
    recipe.await.map_err(|_| SnapshotError::Ending)?
}

async fn recipe(
    host: &Arc<Host>,
    id: BoxId,
    label: &Label,
    progress: &dyn Progress,
) -> Result<(BoxRecord, Label), RestoreError> {
    // Before anything is touched.
    if let Some(record) = boxes::get(host, id).await.map_err(SnapshotError::from)? {
        known(host, &record, label).await?;
    }
    let record = match claim(host, id, WISH).await.map_err(SnapshotError::from)? {
        Claim::Taken(record) | Claim::Already(record) => record,
        Claim::Gone => return Err(SnapshotError::Gone.into()),
        Claim::Busy(record) => {
            let (name, state) = (record.name, record.state);
            return Err(SnapshotError::Busy { name, state }.into());
        }
    };
    fault::point("restore.claimed");
    let replaced = replace(host, &record, label, progress).await;
    if replaced.is_ok() {
        restore_points::go_back(host, id, label).await;
        fault::point("restore.back");
        unfinished::end(host, id).await;
    }
    settle(host, id, BoxState::Stopped, None)
        .await
        .map_err(SnapshotError::from)?;
    fault::point("restore.settled");
    let ran = record.state == BoxState::Running;
    let started = if ran {
        start(host, id).await
    } else {
        let stopped = boxes::get(host, id).await.map_err(SnapshotError::from)?;
        stopped.ok_or(StartError::Gone)
    };
    // What went wrong first is told.
    let undo = replaced?;
    Ok((started?, undo.label))
}

async fn replace(
    host: &Host,
    record: &BoxRecord,
    label: &Label,
    progress: &dyn Progress,
) -> Result<SnapshotInfo, SnapshotError> {
    bring_down(host, record, STOP_GRACE)
        .await
        .map_err(failed(record, "stop the processes"))?;
    fault::point("restore.down");
    let still = BoxRecord {
        state: BoxState::Stopped,
        ..record.clone()
    };
    let before = take(host, &still, (None, SnapshotKind::BeforeRestore), progress).await?;
    fault::point("restore.saved");
    let engine = engine_of(host, record)?;
    unfinished::begin(host, record.id, label).await?;
    fault::point("restore.begun");
    if let Err(error) = engine.restore(&record.id, label, progress).await {
        // The files are what they were.
        unfinished::end(host, record.id).await;
        return Err(failed(record, "restore the files")(error));
    }
    fault::point("restore.replaced");
    forget_older(host, record, label).await;
    Ok(before)
}

/// Each is as large as the box where nothing is shared. The one just restored stays.
async fn forget_older(host: &Host, record: &BoxRecord, restored: &Label) {
    let Ok(mut all) = snapshot::snapshots(host, record).await else {
        return;
    };
    all.retain(|one| one.kind == SnapshotKind::BeforeRestore && one.label != *restored);
    let surplus = all.len().saturating_sub(BEFORE_RESTORE_MAX);
    for one in all.into_iter().take(surplus) {
        let Ok(engine) = engine_of(host, record) else {
            return;
        };
        if let Err(error) = engine.discard(&record.id, &one.label).await {
            tracing::warn!(id = %record.id, label = %one.label, %error, "an old snapshot stays");
            continue;
        }
        if let Err(error) = snapshot::forget(host, record.id, one.label).await {
            tracing::debug!(id = %record.id, %error, "the note of an old snapshot stays");
        }
    }
}
