//! The two marks a box gets on its way: `pristine` and `bootstrapped` (B14–B21).
//!
//! Only their presence means something: the box was in that state and untouched. Nothing takes
//! their absence for anything.

use super::snapshot::{SnapshotError, take};
use crate::boxes::{self, BoxRecord};
use crate::host::Host;
use box_api::snapshot::{Label, SnapshotKind};
use box_runtime::Progress;

/// Whether a mark was really taken (B20).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marked {
    Yes,
    No,
}

/// Marks a box the caller holds or makes. Never fatal: what cannot be marked is told, with the line
/// that does it by hand, and goes on.
pub(super) async fn mark(
    host: &Host,
    record: &BoxRecord,
    kind: SnapshotKind,
    progress: &dyn Progress,
) -> Marked {
    let label = match kind {
        SnapshotKind::Pristine => Label::pristine(),
        SnapshotKind::Bootstrapped
        | SnapshotKind::Manual
        | SnapshotKind::BeforeRestore
        | SnapshotKind::BeforeTurn => Label::bootstrapped(),
    };
    match take(host, record, (Some(label.clone()), kind), progress).await {
        Ok(_) => Marked::Yes,
        // An engine without snapshots says so where a person asks for one.
        Err(SnapshotError::Unable(_)) => Marked::No,
        Err(error) => {
            let (name, why) = (&record.name, boxes::reason(&error));
            tracing::warn!(id = %record.id, %label, why, "a mark was not taken");
            progress.note(&format!(
                "box `{name}` has no `{label}` mark: {why}; `box snapshot {name} {label}` takes it by hand"
            ));
            Marked::No
        }
    }
}
