//! The end of what lies in the trash: over its time, or first to go when the disk is short (D33).

use super::trash::throw_out;
use crate::boxes::{self, BoxRecord, rows};
use crate::host::Host;
use crate::store::StoreError;
use box_api::BoxName;
use box_api::control::KeepWorkspace;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::MissedTickBehavior;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// How often the trash is looked at.
const LOOK_EVERY: Duration = Duration::from_mins(1);
/// The disk is short below this share of it…
const FREE_SHARE_MIN: u64 = 20;
/// …but never while this much is free.
const FREE_BYTES_ENOUGH: u64 = 2 << 30;

/// Whether there is room on the disk of the data folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    Enough,
    Short,
}

/// What left the trash.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expired {
    pub removed: Vec<BoxName>,
    /// What could not be removed, one line each.
    pub left: Vec<String>,
}

/// Looks at the trash from time to time, for as long as the host lives.
pub async fn watch_trash(host: Arc<Host>) {
    let mut ticks = tokio::time::interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let data = host.paths.data.clone();
        if let Err(error) = expire(&host, move || room_at(&data)).await {
            tracing::error!(why = boxes::reason(&error), "nobody looks after the trash");
        }
    }
}

/// Removes what is over its time; while `room` says that the disk is short, the oldest as well.
///
/// # Errors
/// What the store said.
pub async fn expire(host: &Host, room: impl Fn() -> Room + Send) -> Result<Expired, StoreError> {
    let read = |connection: &rusqlite::Connection| rows::trashed(connection, KeepWorkspace::No);
    let (now_ms, days) = (host.now_ms(), host.settings.trash_days.value);
    let mut expired = Expired::default();
    for record in host.store.read(read).await? {
        if is_over(&record, now_ms, days) || room() == Room::Short {
            remove(host, &record, &mut expired).await;
        }
    }
    Ok(expired)
}

/// Empties the trash, kept workspaces included.
///
/// # Errors
/// What the store said.
pub(super) async fn empty(host: &Host, records: &[BoxRecord]) -> Expired {
    let mut expired = Expired::default();
    for record in records {
        remove(host, record, &mut expired).await;
    }
    expired
}

async fn remove(host: &Host, record: &BoxRecord, expired: &mut Expired) {
    match throw_out(host, record.id).await {
        Ok(()) => {
            tracing::info!(id = %record.id, "a box has left the trash");
            expired.removed.push(record.name.clone());
        }
        Err(error) => {
            let why = boxes::reason(&error);
            tracing::warn!(id = %record.id, why, "a box stays in the trash");
            expired.left.push(why);
        }
    }
}

fn is_over(record: &BoxRecord, now_ms: i64, days: u32) -> bool {
    let kept_ms = i64::from(days) * DAY_MS;
    record
        .trashed_at_ms
        .is_some_and(|since| now_ms.saturating_sub(since) >= kept_ms)
}

/// Whether the disk below `folder` has room; one that cannot be asked is taken to have it.
fn room_at(folder: &Path) -> Room {
    let Ok(disk) = rustix::fs::statvfs(folder) else {
        return Room::Enough;
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let whole = disk.f_blocks.saturating_mul(disk.f_frsize);
    if free < FREE_BYTES_ENOUGH && free < whole / FREE_SHARE_MIN {
        Room::Short
    } else {
        Room::Enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_is_not_there_takes_nothing_away() {
        assert_eq!(room_at(Path::new("/nonexistent/folder")), Room::Enough);
    }
}
