//! Snapshots of a box: taken, listed, removed.

use super::claim::{Held, Still, hold_still};
use crate::boxes::{self, BoxRecord};
use crate::host::Host;
use crate::restore_points;
use crate::store::{Durability, StoreError};
use crate::watch::standing_still;
use box_api::control::BoxState;
use box_api::snapshot::{Label, SnapshotInfo, SnapshotKind};
use box_api::{BoxId, BoxName};
use box_runtime::{Progress, RuntimeError, SnapshotSpec, Snapshots};
use std::sync::Arc;

/// States a box can be copied in.
pub(super) const COPIED_IN: &[BoxState] = &[BoxState::Stopped, BoxState::Running, BoxState::Failed];

/// Why nothing was done with a snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("the engine of box `{0}` cannot take snapshots")]
    Unable(BoxName),
    #[error("box `{name}` has a snapshot `{label}` already")]
    Taken { name: BoxName, label: Label },
    #[error("box `{name}` has no snapshot `{label}`")]
    Unknown {
        name: BoxName,
        label: Label,
        known: Vec<Label>,
    },
    #[error("could not {action} of box `{name}`")]
    Engine {
        name: BoxName,
        action: &'static str,
        #[source]
        source: RuntimeError,
    },
    #[error("box `{name}` is {}", boxes::state_word(*state))]
    Busy { name: BoxName, state: BoxState },
    #[error("the box is gone")]
    Gone,
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the host is ending")]
    Ending,
}

/// Takes a snapshot. A running box stands still meanwhile.
///
/// # Errors
/// [`SnapshotError`]; then there is none.
pub async fn snapshot(
    host: &Arc<Host>,
    id: BoxId,
    label: Option<Label>,
    progress: Arc<dyn Progress>,
) -> Result<SnapshotInfo, SnapshotError> {
    let host = Arc::clone(host);
    let recipe = tokio::spawn(async move {
        let (_held, record) = hold(&host, id).await?;
        take(&host, &record, (label, SnapshotKind::Manual), &*progress).await
    });
    recipe.await.map_err(|_| SnapshotError::Ending)?
}

/// The snapshots of a box, oldest first.
///
/// # Errors
/// [`SnapshotError`]
pub async fn snapshots(
    host: &Host,
    record: &BoxRecord,
) -> Result<Vec<SnapshotInfo>, SnapshotError> {
    let listed = engine_of(host, record)?.list(&record.id).await;
    listed.map_err(failed(record, "list the snapshots"))
}

/// Removes one snapshot.
///
/// # Errors
/// [`SnapshotError`]
pub async fn discard(host: &Arc<Host>, id: BoxId, label: Label) -> Result<(), SnapshotError> {
    let host = Arc::clone(host);
    let recipe = tokio::spawn(async move {
        let (_held, record) = hold(&host, id).await?;
        if let Err(error) = known(&host, &record, &label).await {
            if matches!(error, SnapshotError::Unknown { .. }) {
                forget(&host, id, label).await?;
            }
            return Err(error);
        }
        let discarded = engine_of(&host, &record)?.discard(&id, &label).await;
        discarded.map_err(failed(&record, "remove the snapshot"))?;
        Ok(forget(&host, id, label).await?)
    });
    recipe.await.map_err(|_| SnapshotError::Ending)?
}

/// Takes a snapshot of a box the caller holds. Without a label it is named after the time.
pub(super) async fn take(
    host: &Host,
    record: &BoxRecord,
    (label, kind): (Option<Label>, SnapshotKind),
    progress: &dyn Progress,
) -> Result<SnapshotInfo, SnapshotError> {
    let engine = engine_of(host, record)?;
    let there = snapshots(host, record).await?;
    let at_ms = host.now_ms();
    let taken = |label: &Label| there.iter().any(|one| one.label == *label);
    let label = match label {
        Some(label) if taken(&label) => {
            let name = record.name.clone();
            return Err(SnapshotError::Taken { name, label });
        }
        Some(label) => label,
        None => free_label(kind, at_ms, taken),
    };
    let (id, noted) = (record.id, label.clone());
    // Before: what agents say meanwhile may be in the files or not, and counts as later.
    let noting = host.store.write(Durability::Prompt, move |tables| {
        restore_points::note_moment(tables, &id, &noted, at_ms)
    });
    noting.await?;
    let spec = SnapshotSpec { label, kind, at_ms };
    let copy = engine.take(&record.id, &spec, progress);
    let made = standing_still(host, record, copy).await;
    if made.is_err() {
        forget(host, id, spec.label).await?;
    }
    made.map_err(failed(record, "take a snapshot"))
}

/// What was written down beside a snapshot goes with it.
pub(super) async fn forget(host: &Host, id: BoxId, label: Label) -> Result<(), StoreError> {
    let forgetting = host.store.write(Durability::Prompt, move |tables| {
        restore_points::forget(tables, &id, &label)
    });
    forgetting.await
}

/// `<kind>-<epoch seconds>`, or a second later while that one is taken.
fn free_label(kind: SnapshotKind, at_ms: i64, taken: impl Fn(&Label) -> bool) -> Label {
    let word = match kind {
        SnapshotKind::Manual | SnapshotKind::Pristine | SnapshotKind::Bootstrapped => "manual",
        SnapshotKind::BeforeRestore => "before-restore",
        // They are counted; see `restore_points`.
        SnapshotKind::BeforeTurn => "before-turn",
    };
    let mut at_ms = at_ms;
    loop {
        let label = Label::at(word, at_ms);
        if !taken(&label) {
            return label;
        }
        at_ms += 1000;
    }
}

/// The snapshot of that label.
pub(super) async fn known(
    host: &Host,
    record: &BoxRecord,
    label: &Label,
) -> Result<SnapshotInfo, SnapshotError> {
    let all = snapshots(host, record).await?;
    let found = all.iter().find(|one| one.label == *label).cloned();
    found.ok_or_else(|| SnapshotError::Unknown {
        name: record.name.clone(),
        label: label.clone(),
        known: all.into_iter().map(|one| one.label).collect(),
    })
}

/// Holds a box in a state it can be copied in.
pub(crate) async fn hold(host: &Host, id: BoxId) -> Result<(Held, BoxRecord), SnapshotError> {
    match hold_still(host, id, COPIED_IN).await? {
        Still::Held(held, record) => Ok((held, record)),
        Still::Gone => Err(SnapshotError::Gone),
        Still::Busy(record) => Err(SnapshotError::Busy {
            name: record.name,
            state: record.state,
        }),
    }
}

pub(super) fn engine_of<'h>(
    host: &'h Host,
    record: &BoxRecord,
) -> Result<&'h dyn Snapshots, SnapshotError> {
    let runtime = host
        .runtime_of(record)
        .map_err(failed(record, "reach the engine"))?;
    let able = runtime.snapshots();
    able.ok_or_else(|| SnapshotError::Unable(record.name.clone()))
}

pub(super) fn failed(
    record: &BoxRecord,
    action: &'static str,
) -> impl FnOnce(RuntimeError) -> SnapshotError {
    let name = record.name.clone();
    move |source| SnapshotError::Engine {
        name,
        action,
        source,
    }
}
