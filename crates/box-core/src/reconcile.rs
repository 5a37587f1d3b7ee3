//! One pass that makes rows and engines agree: at start, and when a box ended by itself.
//!
//! What an engine lists is the only truth about what runs; the row says what was wished. A box that
//! was being made when the host died was never promised to anybody and is removed; one that was
//! being removed is removed; everything else keeps its files.

use crate::boxes::{self, BoxRecord, rows};
use crate::host::Host;
use crate::lifecycle::{
    STOP_GRACE, bring_down, clear_after, dismantle, hold_running, move_state_because, settle,
};
use crate::store::StoreError;
use crate::watch::{self, why_ended};
use box_api::BoxId;
use box_api::control::BoxState;
use box_runtime::{Observed, RuntimeError};
use std::collections::BTreeMap;

/// What a pass did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Boxes that run and are the host's again.
    pub adopted: Vec<BoxId>,
    /// Boxes that were taken for running, starting or stopping and are stopped.
    pub stopped: Vec<BoxId>,
    pub removed: Vec<BoxId>,
    pub failed: Vec<BoxId>,
    /// Boxes of an engine without a row. Those that ran were stopped; their files are kept, as
    /// nobody said they may go.
    pub strangers: Vec<BoxId>,
}

/// What is to be done about one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Nothing,
    Adopt,
    MarkStopped,
    BringDown,
    Dismantle,
    /// It has a row and no files.
    MarkLost,
}

/// How an engine sees the box of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    Running,
    Still,
    Absent,
}

/// The whole table: pure, so that a test can read it row by row.
fn step(state: BoxState, seen: Seen) -> Step {
    match (state, seen) {
        (BoxState::Creating | BoxState::Removing, _) | (BoxState::Trashed, Seen::Absent) => {
            Step::Dismantle
        }
        (BoxState::Starting | BoxState::Running, Seen::Running) => Step::Adopt,
        // An engine replaces files in one step, so a restored box has the old ones or the new ones.
        (
            BoxState::Starting | BoxState::Running | BoxState::Stopping | BoxState::Restoring,
            Seen::Still,
        ) => Step::MarkStopped,
        // Nobody wished these to run.
        (
            BoxState::Stopping
            | BoxState::Stopped
            | BoxState::Failed
            | BoxState::Restoring
            | BoxState::Trashed,
            Seen::Running,
        ) => Step::BringDown,
        (BoxState::Stopped | BoxState::Failed | BoxState::Trashed, Seen::Still)
        | (BoxState::Failed, Seen::Absent) => Step::Nothing,
        (
            BoxState::Starting
            | BoxState::Running
            | BoxState::Stopping
            | BoxState::Stopped
            | BoxState::Restoring,
            Seen::Absent,
        ) => Step::MarkLost,
    }
}

/// One pass over every row and every engine. Called before the host serves, when no recipe runs.
///
/// # Errors
/// What the store said. What an engine said ends up in the row of its box.
pub async fn reconcile_once(host: &Host) -> Result<Report, StoreError> {
    let mut report = Report::default();
    watch::take_up(host).await?;
    let records = host.store.read(rows::all).await?;
    let mut by_engine: BTreeMap<String, Vec<BoxRecord>> = BTreeMap::new();
    for record in records {
        by_engine
            .entry(record.runtime.clone())
            .or_default()
            .push(record);
    }
    for runtime in host.runtimes.all() {
        let records = by_engine.remove(runtime.name()).unwrap_or_default();
        let observed = match runtime.list().await {
            Ok(observed) => observed,
            Err(error) => {
                let why = boxes::reason(&error);
                tracing::error!(
                    engine = runtime.name(),
                    why,
                    "an engine does not list its boxes"
                );
                continue;
            }
        };
        for record in &records {
            put_right(host, record, seen(&observed, &record.id), &mut report).await?;
        }
        for stranger in &observed {
            if !records.iter().any(|record| record.id == stranger.id) {
                stop_stranger(host, runtime.name(), stranger).await;
                report.strangers.push(stranger.id);
            }
        }
    }
    for (engine, records) in by_engine {
        tracing::warn!(
            engine,
            boxes = records.len(),
            "this host was started without an engine"
        );
    }
    Ok(report)
}

/// A box that ran has ended by itself, or is said to have.
///
/// # Errors
/// What the store said.
pub async fn box_ended(host: &Host, id: BoxId) -> Result<(), StoreError> {
    let Some(record) = boxes::get(host, id).await? else {
        return Ok(());
    };
    // Any other state means that a recipe works on it and knows better.
    if record.state != BoxState::Running {
        return Ok(());
    }
    // Held, so that nobody stops and starts it between the look and what follows.
    let Some((_held, record)) = hold_running(host, record.id).await? else {
        return Ok(());
    };
    let Ok(runtime) = host.runtime_of(&record) else {
        return Ok(());
    };
    match runtime.list().await {
        Ok(observed) if seen(&observed, &id) != Seen::Running => {
            tracing::info!(%id, "a box has ended by itself");
            host.touches.stopped(id, host.now_ms()).await;
            let why = why_ended(host, &record).await;
            clear_after(host, &record).await;
            move_state_because(host, &record, BoxState::Stopped, why)
                .await
                .map(drop)
        }
        Ok(_) => Ok(()),
        Err(error) => {
            tracing::warn!(%id, why = boxes::reason(&error), "an engine does not list its boxes");
            Ok(())
        }
    }
}

fn seen(observed: &[Observed], id: &BoxId) -> Seen {
    match observed.iter().find(|seen| seen.id == *id) {
        Some(Observed { running: true, .. }) => Seen::Running,
        Some(Observed { running: false, .. }) => Seen::Still,
        None => Seen::Absent,
    }
}

async fn put_right(
    host: &Host,
    record: &BoxRecord,
    seen: Seen,
    report: &mut Report,
) -> Result<(), StoreError> {
    let id = record.id;
    let done = match step(record.state, seen) {
        Step::Nothing => {
            // The last host may have died between the end of a box and the clearing after it.
            clear_after(host, record).await;
            return Ok(());
        }
        Step::Adopt => {
            settle(host, id, BoxState::Running, None).await?;
            thaw(host, record).await;
            host.egress.admit(record, None).await;
            report.adopted.push(id);
            return Ok(());
        }
        Step::MarkStopped => {
            let why = why_stopped(host, record).await;
            clear_after(host, record).await;
            settle(host, id, BoxState::Stopped, why).await?;
            report.stopped.push(id);
            return Ok(());
        }
        Step::MarkLost => {
            settle(
                host,
                id,
                BoxState::Failed,
                Some("its files are gone".to_owned()),
            )
            .await?;
            report.failed.push(id);
            return Ok(());
        }
        Step::BringDown => match bring_down(host, record, STOP_GRACE).await {
            Ok(()) => {
                if record.state != BoxState::Trashed {
                    settle(host, id, BoxState::Stopped, None).await?;
                }
                report.stopped.push(id);
                return Ok(());
            }
            Err(error) => boxes::reason(&error),
        },
        Step::Dismantle => match dismantle(host, record).await {
            Ok(()) => {
                report.removed.push(id);
                return Ok(());
            }
            Err(error) => boxes::reason(&error),
        },
    };
    tracing::warn!(%id, why = done, "a box could not be put right");
    // A box on its way out stays so: it has given its name back, and the next pass tries again.
    if record.is_live() {
        settle(host, id, BoxState::Failed, Some(done)).await?;
    }
    report.failed.push(id);
    Ok(())
}

async fn why_stopped(host: &Host, record: &BoxRecord) -> Option<String> {
    match record.state {
        BoxState::Running => why_ended(host, record).await,
        BoxState::Restoring => {
            Some("the host ended while its files were being restored".to_owned())
        }
        BoxState::Creating
        | BoxState::Starting
        | BoxState::Stopping
        | BoxState::Stopped
        | BoxState::Removing
        | BoxState::Failed
        | BoxState::Trashed => None,
    }
}

/// The last host may have died while the box stood still for a copy. One that it froze for longer
/// stays frozen.
async fn thaw(host: &Host, record: &BoxRecord) {
    if host.touches.is_frozen(&record.id).await {
        return;
    }
    let freezer = host.runtime_of(record).map(|runtime| runtime.freezer());
    let Ok(Some(freezer)) = freezer else { return };
    match freezer.thaw(&record.id).await {
        Ok(()) | Err(RuntimeError::NotRunning(_) | RuntimeError::NotFound(_)) => {}
        Err(error) => {
            tracing::warn!(id = %record.id, why = boxes::reason(&error), "a box may be frozen");
        }
    }
}

async fn stop_stranger(host: &Host, engine: &str, stranger: &Observed) {
    let id = stranger.id;
    tracing::warn!(%id, engine, "an engine has a box nobody owns");
    let Some(runtime) = host.runtimes.named(engine).filter(|_| stranger.running) else {
        return;
    };
    match runtime.stop(&id, STOP_GRACE).await {
        Ok(()) | Err(RuntimeError::NotRunning(_) | RuntimeError::NotFound(_)) => {}
        Err(error) => tracing::error!(%id, why = boxes::reason(&error), "it runs on"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATES: [BoxState; 9] = [
        BoxState::Creating,
        BoxState::Stopped,
        BoxState::Starting,
        BoxState::Running,
        BoxState::Stopping,
        BoxState::Removing,
        BoxState::Failed,
        BoxState::Restoring,
        BoxState::Trashed,
    ];

    #[test]
    fn only_what_was_never_promised_or_is_to_go_is_removed() {
        for state in STATES {
            for seen in [Seen::Running, Seen::Still, Seen::Absent] {
                let goes = matches!(state, BoxState::Creating | BoxState::Removing)
                    || (state, seen) == (BoxState::Trashed, Seen::Absent);
                assert_eq!(
                    step(state, seen) == Step::Dismantle,
                    goes,
                    "{state:?} {seen:?}"
                );
            }
        }
    }

    #[test]
    fn a_box_runs_on_only_if_somebody_wished_it() {
        for state in STATES {
            let wished = matches!(state, BoxState::Starting | BoxState::Running);
            assert_eq!(
                step(state, Seen::Running) == Step::Adopt,
                wished,
                "{state:?}"
            );
        }
    }

    #[test]
    fn a_box_without_files_is_never_called_stopped() {
        for state in STATES {
            let step = step(state, Seen::Absent);
            assert!(
                !matches!(step, Step::MarkStopped | Step::Adopt),
                "{state:?}"
            );
        }
    }
}
