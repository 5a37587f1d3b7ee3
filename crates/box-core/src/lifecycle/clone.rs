//! `clone`: source held → row → files → identity of its own → start (B10, B11, B16).

use super::claim::settle;
use super::create::{CreateError, check_limits, give_up, refuse_taken, reserve};
use super::snapshot::{self, SnapshotError, engine_of, known};
use super::{files, spec_of, start};
use crate::boxes::rows;
use crate::boxes::{self, BoxRecord, FindError};
use crate::caller::Caller;
use crate::credentials;
use crate::host::Host;
use crate::network::rules;
use crate::restore_points;
use crate::store::StoreError;
use crate::watch::standing_still;
use box_api::BoxId;
use box_api::control::{BoxSettings, BoxState, CloneBox, Limits, Origin, Sizes};
use box_api::snapshot::{CopyMethod, SnapshotInfo};
use box_runtime::{CloneSource, Progress, fault};
use rusqlite::Transaction;
use std::sync::Arc;

/// Why a box was not cloned.
#[derive(Debug, thiserror::Error)]
pub enum CloneError {
    #[error(transparent)]
    Find(#[from] FindError),
    #[error(transparent)]
    Source(#[from] SnapshotError),
    #[error(transparent)]
    Create(#[from] CreateError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the host is ending")]
    Ending,
}

/// Makes a box of another one's files, and starts it if that was asked. Everything inside comes
/// along; its id, its range of ids, its machine-id and its placeholders are its own.
///
/// # Errors
/// [`CloneError`]; nothing of the clone is left, unless it was made and only its start failed.
pub async fn clone(
    host: &Arc<Host>,
    caller: &Caller,
    asked: CloneBox,
    progress: Arc<dyn Progress>,
) -> Result<BoxRecord, CloneError> {
    let (host, caller) = (Arc::clone(host), *caller);
    let recipe = tokio::spawn(async move { recipe(&host, &caller, asked, &*progress).await });
    recipe.await.map_err(|_| CloneError::Ending)?
}

async fn recipe(
    host: &Arc<Host>,
    caller: &Caller,
    asked: CloneBox,
    progress: &dyn Progress,
) -> Result<BoxRecord, CloneError> {
    refuse_taken(host, caller, &asked.name).await?;
    let source = boxes::find(host, caller, &asked.source).await?;
    let limits = with_sizes(source.limits, asked.sizes);
    check_limits(&limits)?;
    let chosen = match &asked.label {
        Some(label) => Some(known(host, &source, label).await?),
        None => None,
    };
    let start_it = asked.start;
    let (held, source) = snapshot::hold(host, source.id).await?;
    tell_size(host, &source, chosen.as_ref(), progress).await;
    let planned = planned(host, *caller, (asked, limits), &source);
    let record = reserve_like(host, planned, source.id).await?;
    fault::point("clone.reserved");
    let mut built = build(host, &record, &source, progress).await;
    if let (Ok(()), Some(chosen)) = (&built, &chosen) {
        let along = restore_points::bring_along(host, source.id, &chosen.label, &record);
        built = along.await.map_err(CloneError::from);
    }
    if let Err(error) = built {
        give_up(host, &record).await;
        return Err(error);
    }
    drop(held);
    fault::point("clone.built");
    settle(host, record.id, BoxState::Stopped, None).await?;
    fault::point("clone.settled");
    if start_it {
        let started = start(host, record.id).await;
        return Ok(started.map_err(CreateError::from)?);
    }
    Ok(boxes::get(host, record.id).await?.unwrap_or(record))
}

fn with_sizes(limits: Limits, sizes: Sizes) -> Limits {
    Limits {
        cpu_milli: sizes.cpu_milli.unwrap_or(limits.cpu_milli),
        memory_bytes: sizes.memory_bytes.unwrap_or(limits.memory_bytes),
        disk_bytes: sizes.disk_bytes.unwrap_or(limits.disk_bytes),
        pids: sizes.pids.unwrap_or(limits.pids),
        open_files: sizes.open_files.unwrap_or(limits.open_files),
        tmp_bytes: sizes.tmp_bytes.unwrap_or(limits.tmp_bytes),
    }
}

fn with_settings(settings: BoxSettings, sizes: Sizes) -> BoxSettings {
    BoxSettings {
        deadline_ms: sizes.deadline_ms.or(settings.deadline_ms),
        freeze_after_ms: sizes.freeze_after_ms.or(settings.freeze_after_ms),
        nested: settings.nested || sizes.nested,
        ..settings
    }
}

/// Where every byte is copied, that is said before it begins.
async fn tell_size(
    host: &Host,
    source: &BoxRecord,
    chosen: Option<&SnapshotInfo>,
    progress: &dyn Progress,
) {
    let full = engine_of(host, source).is_ok_and(|engine| engine.method() == CopyMethod::Full);
    if !full {
        return;
    }
    let bytes = match chosen {
        Some(snapshot) => Some(snapshot.bytes),
        None => super::disk::disk_usage(host, source)
            .await
            .ok()
            .map(|used| {
                used.workspace_bytes + used.home_bytes + used.root_bytes + used.snapshots_bytes
            }),
    };
    match bytes {
        Some(bytes) => progress.say(&format!(
            "full copy of {}: files cannot be shared here",
            size(bytes)
        )),
        None => progress.say("full copy: files cannot be shared here"),
    }
}

/// In the largest unit it fills, with one place behind the point.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KB", "MB", "GB", "TB"];
    let mut tenths = bytes / 100;
    let mut units = UNITS.iter();
    let mut unit = units.next();
    while tenths >= 10_000
        && let Some(next) = units.next()
    {
        (tenths, unit) = (tenths / 1000, Some(next));
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, unit.unwrap_or(&"KB"))
}

fn planned(
    host: &Host,
    caller: Caller,
    (asked, limits): (CloneBox, Limits),
    source: &BoxRecord,
) -> BoxRecord {
    BoxRecord {
        id: host.random.box_id(),
        owner: caller.owner,
        name: asked.name,
        title: asked.title,
        state: BoxState::Creating,
        limits,
        id_offset: 0,
        created_at_ms: host.now_ms(),
        problem: None,
        settings: with_settings(source.settings.clone(), asked.sizes),
        origin: Some(Origin::Clone {
            id: source.id,
            name: source.name.clone(),
            label: asked.label,
        }),
        trashed_at_ms: None,
        ..source.clone()
    }
}

/// Row, what the way out knows of names, and what its owner said about its network, together.
async fn reserve_like(
    host: &Host,
    record: BoxRecord,
    source: BoxId,
) -> Result<BoxRecord, CreateError> {
    let id = record.id;
    let beside = move |transaction: &Transaction<'_>| {
        rows::copy_names(transaction, &source, &id)?;
        rules::copy(transaction, &source, &id)
    };
    reserve(host, record, beside).await
}

async fn build(
    host: &Host,
    record: &BoxRecord,
    source: &BoxRecord,
    progress: &dyn Progress,
) -> Result<(), CloneError> {
    let place = files::place(host, record).await;
    place.map_err(|source| CreateError::Files {
        name: record.name.clone(),
        source,
    })?;
    let Some(Origin::Clone { label, .. }) = &record.origin else {
        return Err(SnapshotError::Gone.into());
    };
    let from = CloneSource {
        id: source.id,
        id_offset: source.id_offset,
        label: label.clone(),
    };
    let (engine, spec) = (engine_of(host, source)?, spec_of(host, record));
    let copy = engine.clone_from(&from, &spec, progress);
    let copied = match label {
        // A snapshot stands still by itself.
        Some(_) => copy.await,
        None => standing_still(host, source, copy).await,
    };
    copied.map_err(|source| CreateError::Engine {
        name: record.name.clone(),
        source,
    })?;
    credentials::bind_like(host, source, record).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_said_in_the_largest_unit() {
        assert_eq!(size(0), "0.0 KB");
        assert_eq!(size(12_345), "12.3 KB");
        assert_eq!(size(1_000_000), "1.0 MB");
        assert_eq!(size(20_500_000_000), "20.5 GB");
    }
}
