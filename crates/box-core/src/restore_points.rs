//! Restore points: what a box was before each turn, files and conversations together.
//!
//! Where a copy costs next to nothing the host keeps a box between the commit of a prompt and its
//! way to the agent. Beside every snapshot it writes down where the box's threads stood, so that a
//! restore of any of them brings the conversations back with the files: the agent finds its own
//! record as it was then, is started anew and loads it, and the journal says from which row on it
//! counts for nothing.

mod along;
mod back;
mod rows;
mod take;
mod thin;

pub use rows::TurnBegun;
pub use take::WAIT_MAX;
pub use thin::{POINTS_PER_BOX_MAX, watch};

pub(crate) use along::bring_along;
pub(crate) use back::go_back;
pub(crate) use rows::{Stood, copy_ways_back, forget, note_moment, note_way_back};
pub(crate) use take::before_turn;

use crate::boxes::BoxRecord;
use crate::host::Host;
use crate::lifecycle::{self, SnapshotError};
use box_api::restore_point::{RestorePoint, RestorePoints, TurnUndo, is_live};
use box_api::snapshot::{CopyMethod, SnapshotInfo, SnapshotKind};
use rows::PointRow;

/// What a box can be brought back to, turn by turn.
///
/// # Errors
/// As [`lifecycle::snapshots`].
pub async fn list(host: &Host, record: &BoxRecord) -> Result<RestorePoints, SnapshotError> {
    let there = lifecycle::snapshots(host, record).await?;
    let id = record.id;
    let read = host.store.read(move |tables| {
        let mut points = Vec::new();
        for row in rows::of_box(tables, &id)? {
            let (ways, end) = rows::ways_back(tables, row.begun.place)?;
            let live = is_live(row.begun.seq, end, &ways);
            points.push((row, live));
        }
        Ok(points)
    });
    let points = read.await?.into_iter();
    let shown = points.filter_map(|point| shown(&there, point));
    let way_forward = there
        .iter()
        .rfind(|one| one.kind == SnapshotKind::BeforeRestore);
    Ok(RestorePoints {
        points: shown.collect(),
        none_because: none_because(host, record),
        way_forward: way_forward.map(|one| one.label.clone()),
    })
}

/// A point whose snapshot is there.
fn shown(there: &[SnapshotInfo], (row, live): (PointRow, bool)) -> Option<RestorePoint> {
    let snapshot = there.iter().find(|one| one.label == row.label)?;
    Some(RestorePoint {
        label: row.label,
        thread: row.begun.place.thread,
        seq: row.begun.seq,
        at_ms: row.at_ms,
        words: row.begun.words,
        bytes: snapshot.bytes,
        took_us: row.took_us,
        undone: !live,
    })
}

/// What is set for a box, or for all of them.
fn wanted(host: &Host, record: &BoxRecord) -> TurnUndo {
    let of_host = host.current.now().undo.value;
    record.settings.undo.unwrap_or(of_host)
}

/// Why the next turn of a box gets no restore point, for a person.
fn none_because(host: &Host, record: &BoxRecord) -> Option<String> {
    let runtime = host.runtime_of(record).ok()?;
    let Some(engine) = runtime.snapshots() else {
        return Some("its engine cannot take snapshots".to_owned());
    };
    match (wanted(host, record), engine.method()) {
        (TurnUndo::Off, _) => Some("`undo` is off for it".to_owned()),
        (TurnUndo::Auto, CopyMethod::Full) => Some(
            "this disk cannot share content between files, so that every one would be a full copy"
                .to_owned(),
        ),
        (TurnUndo::Auto, CopyMethod::Subvolume | CopyMethod::Reflink) => None,
    }
}

#[cfg(test)]
mod tests;
