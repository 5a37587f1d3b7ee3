//! Keeps a box just before a turn.

use super::rows::{self, TurnBegun};
use super::{thin, wanted};
use crate::boxes::{self, BoxRecord};
use crate::host::Host;
use crate::lifecycle::{self, Quiet, SnapshotError};
use crate::store::Durability;
use crate::watch::standing_still;
use box_api::BoxId;
use box_api::restore_point::TurnUndo;
use box_api::snapshot::{CopyMethod, Label, SnapshotKind};
use box_runtime::{RuntimeError, SnapshotSpec, Snapshots};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// Longest a prompt waits for the copy. One that takes longer goes on: the box is held until it is
/// whole, and where files are copied one by one it stands still, so that the turn is not in it.
pub const WAIT_MAX: Duration = Duration::from_secs(5);
/// A copy file by file is followed by the next after so many times as long as it took: copies may
/// cost that part of the time.
const SPARED: i64 = 50;

/// Keeps a box before a turn, where that costs next to nothing and nobody has turned it off. Never
/// a reason for a turn not to begin.
pub(crate) async fn before_turn(host: &Arc<Host>, box_id: BoxId, begun: TurnBegun) {
    let task = {
        let (host, thread) = (Arc::clone(host), begun.place.thread);
        tokio::spawn(async move {
            match keep(&host, box_id, begun).await {
                Ok(Some(label)) => {
                    tracing::debug!(%box_id, %thread, %label, "a restore point was taken");
                    Some(host)
                }
                Ok(None) => None,
                Err(error) => {
                    let why = boxes::reason(&error);
                    tracing::warn!(%box_id, %thread, why, "a turn has no restore point");
                    None
                }
            }
        })
    };
    // Late: it goes on by itself.
    if let Ok(Ok(Some(host))) = timeout(WAIT_MAX, task).await {
        tokio::spawn(async move {
            if let Err(error) = thin::thin(&host, box_id).await {
                let why = boxes::reason(&error);
                tracing::warn!(%box_id, why, "restore points were not thinned");
            }
        });
    }
}

async fn keep(
    host: &Host,
    box_id: BoxId,
    begun: TurnBegun,
) -> Result<Option<Label>, SnapshotError> {
    let Some(record) = boxes::get(host, box_id).await? else {
        return Ok(None);
    };
    if wanted(host, &record) == TurnUndo::Off || thin::is_short(host, box_id).await? {
        return Ok(None);
    }
    match method(host, &record) {
        None | Some(CopyMethod::Full) => return Ok(None),
        Some(CopyMethod::Reflink) if is_too_soon(host, box_id).await? => return Ok(None),
        Some(CopyMethod::Subvolume | CopyMethod::Reflink) => {}
    }
    let start = Instant::now();
    let (_held, record) = lifecycle::hold(host, box_id).await?;
    let at_ms = host.now_ms();
    let reserved = host.store.write(Durability::Prompt, move |tables| {
        rows::reserve(tables, &box_id, &begun, at_ms)
    });
    let label = reserved.await?;
    let taken = take(host, &record, &label, at_ms).await;
    let took_us = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX >> 1);
    let noted = label.clone();
    let failed = taken.is_err();
    let written = host.store.write(Durability::Prompt, move |tables| {
        if failed {
            rows::forget(tables, &box_id, &noted)
        } else {
            rows::taken(tables, &box_id, &noted, took_us)
        }
    });
    written.await?;
    let name = record.name;
    let action = "keep the files";
    taken.map_err(|source| SnapshotError::Engine {
        name,
        action,
        source,
    })?;
    Ok(Some(label))
}

/// How the engine copies: probed when it started, never assumed.
fn method(host: &Host, record: &BoxRecord) -> Option<CopyMethod> {
    let engine = host.runtime_of(record).ok()?.snapshots()?;
    Some(engine.method())
}

/// Where files are copied one by one, a box of many is not kept before each turn.
async fn is_too_soon(host: &Host, box_id: BoxId) -> Result<bool, SnapshotError> {
    let points = host.store.read(move |tables| rows::of_box(tables, &box_id));
    let points = points.await?;
    let now_ms = host.now_ms();
    Ok(points.last().is_some_and(|last| {
        let took_ms = i64::try_from(last.took_us / 1000).unwrap_or(i64::MAX);
        let since_ms = now_ms.saturating_sub(last.at_ms);
        (0..took_ms.saturating_mul(SPARED)).contains(&since_ms)
    }))
}

/// A subvolume is copied in one step, which needs nobody to stand still.
async fn take(
    host: &Host,
    record: &BoxRecord,
    label: &Label,
    at_ms: i64,
) -> Result<(), RuntimeError> {
    let engine: &dyn Snapshots = match host.runtime_of(record)?.snapshots() {
        Some(engine) => engine,
        None => return Ok(()),
    };
    let spec = SnapshotSpec {
        label: label.clone(),
        kind: SnapshotKind::BeforeTurn,
        at_ms,
    };
    let copy = engine.take(&record.id, &spec, &Quiet);
    let taken = match engine.method() {
        CopyMethod::Subvolume => copy.await,
        CopyMethod::Reflink | CopyMethod::Full => standing_still(host, record, copy).await,
    };
    taken.map(drop)
}
