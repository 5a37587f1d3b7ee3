//! Which restore points stay.
//!
//! All of the last day, then one an hour for a week, then one a day for a month, a hundred of one
//! box at most; the newest of a box always. While less than a tenth of the disk is free the oldest
//! go first, whosever they are, before anything in the trash does.

use super::rows::{self, PointRow};
use crate::boxes;
use crate::host::Host;
use crate::lifecycle;
use crate::store::StoreError;
use box_api::snapshot::CopyMethod;
use box_api::{BoxId, Label};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::MissedTickBehavior;

const HOUR_MS: i64 = 60 * 60 * 1000;
const DAY_MS: i64 = 24 * HOUR_MS;
const WEEK_MS: i64 = 7 * DAY_MS;
const MONTH_MS: i64 = 30 * DAY_MS;
/// Restore points of one box.
pub const POINTS_PER_BOX_MAX: usize = 100;
/// How often they are looked at.
const LOOK_EVERY: Duration = Duration::from_mins(1);
/// Restore points go below this share of free disk…
const FREE_SHARE_MIN: u64 = 10;
/// …but never while this much is free.
const FREE_BYTES_ENOUGH: u64 = 10 << 30;
/// Removed at one look for want of space, as it comes back only after a while.
const REMOVED_FOR_SPACE_MAX: usize = 5;

/// Of points of one box, oldest first by their times, which go.
pub(super) fn surplus(times_ms: &[i64], now_ms: i64) -> Vec<usize> {
    let mut seen = BTreeSet::new();
    let mut kept = 0;
    let mut gone = Vec::new();
    // The newest of each hour or day stays, so from the newest on.
    for (index, at_ms) in times_ms.iter().enumerate().rev() {
        let age_ms = now_ms.saturating_sub(*at_ms);
        let slot = match age_ms {
            ..DAY_MS => None,
            DAY_MS..WEEK_MS => Some((HOUR_MS, at_ms.div_euclid(HOUR_MS))),
            WEEK_MS..MONTH_MS => Some((DAY_MS, at_ms.div_euclid(DAY_MS))),
            MONTH_MS.. => Some((0, 0)),
        };
        let first = slot.is_none_or(|slot| age_ms < MONTH_MS && seen.insert(slot));
        if kept == 0 || (first && kept < POINTS_PER_BOX_MAX) {
            kept += 1;
        } else {
            gone.push(index);
        }
    }
    gone.reverse();
    gone
}

/// Removes what goes of one box.
pub(super) async fn thin(host: &Arc<Host>, box_id: BoxId) -> Result<(), StoreError> {
    let points = host.store.read(move |tables| rows::of_box(tables, &box_id));
    let points = points.await?;
    for label in thinned(&points, host.now_ms()) {
        remove(host, box_id, label).await;
    }
    Ok(())
}

fn thinned(points: &[PointRow], now_ms: i64) -> Vec<Label> {
    let times: Vec<i64> = points.iter().map(|point| point.at_ms).collect();
    let gone = surplus(&times, now_ms).into_iter();
    gone.map(|index| points[index].label.clone()).collect()
}

async fn remove(host: &Arc<Host>, box_id: BoxId, label: Label) {
    match lifecycle::discard(host, box_id, label.clone()).await {
        Ok(()) => tracing::debug!(%box_id, %label, "a restore point has gone"),
        Err(error) => {
            let why = boxes::reason(&error);
            tracing::debug!(%box_id, %label, why, "a restore point stays");
        }
    }
}

/// Looks at all restore points from time to time, for as long as the host lives.
pub async fn watch(host: Arc<Host>) {
    let copies = host.runtimes.default().snapshots();
    if copies.is_some_and(|engine| engine.method() == CopyMethod::Full) {
        tracing::info!("turns have no restore points: each would be a full copy on this disk");
    }
    if let Err(error) = drop_unfinished(&host).await {
        let why = boxes::reason(&error);
        tracing::warn!(why, "restore points that an earlier host began are left");
    }
    let mut ticks = tokio::time::interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Err(error) = look(&host).await {
            let why = boxes::reason(&error);
            tracing::warn!(why, "restore points were not looked at");
        }
    }
}

/// What an earlier host began to take and did not come to write down.
async fn drop_unfinished(host: &Arc<Host>) -> Result<(), StoreError> {
    let before_ms = host.started_at_ms;
    let begun = host
        .store
        .read(move |tables| rows::unfinished(tables, before_ms));
    for (box_id, label) in begun.await? {
        remove(host, box_id, label).await;
    }
    Ok(())
}

async fn look(host: &Arc<Host>) -> Result<(), StoreError> {
    let points = host.store.read(rows::all).await?;
    let mut of_boxes: BTreeMap<BoxId, Vec<PointRow>> = BTreeMap::new();
    for point in &points {
        of_boxes
            .entry(point.box_id)
            .or_default()
            .push(point.clone());
    }
    for (box_id, points) in of_boxes {
        for label in thinned(&points, host.now_ms()) {
            remove(host, box_id, label).await;
        }
    }
    let points = host.store.read(rows::all).await?;
    for point in points.into_iter().take(REMOVED_FOR_SPACE_MAX) {
        if !is_short(host, point.box_id).await? {
            return Ok(());
        }
        remove(host, point.box_id, point.label).await;
    }
    Ok(())
}

/// Whether the disk that a box lies on is short.
pub(super) async fn is_short(host: &Host, box_id: BoxId) -> Result<bool, StoreError> {
    let Some(record) = boxes::get(host, box_id).await? else {
        return Ok(false);
    };
    let runtime = host.runtime_of(&record).ok();
    let place = runtime.and_then(|runtime| runtime.workspace(&box_id));
    Ok(place.is_some_and(|place| is_short_at(&place)))
}

/// A disk that cannot be asked is taken to have room.
fn is_short_at(place: &Path) -> bool {
    let Ok(disk) = rustix::fs::statvfs(place) else {
        return false;
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let whole = disk.f_blocks.saturating_mul(disk.f_frsize);
    free < FREE_BYTES_ENOUGH && free < whole / FREE_SHARE_MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: i64 = 400 * DAY_MS;

    fn kept(ages_ms: &[i64]) -> Vec<i64> {
        let times: Vec<i64> = ages_ms.iter().map(|age| NOW_MS - age).collect();
        let gone = surplus(&times, NOW_MS);
        let stay = (0..times.len()).filter(|index| !gone.contains(index));
        stay.map(|index| ages_ms[index]).collect()
    }

    #[test]
    fn all_of_the_last_day_stay() {
        let ages: Vec<i64> = (0..50).rev().map(|minutes| minutes * 60_000).collect();
        assert_eq!(kept(&ages), ages);
    }

    #[test]
    fn an_older_hour_keeps_its_newest_and_an_older_day_too() {
        let hours = [3 * DAY_MS - 1, 3 * DAY_MS - 2, 3 * DAY_MS - HOUR_MS, 5];
        assert_eq!(
            kept(&hours),
            [3 * DAY_MS - 2, 3 * DAY_MS - HOUR_MS, 5],
            "one an hour"
        );
        let days = [10 * DAY_MS - 1, 10 * DAY_MS - HOUR_MS, 9 * DAY_MS - 1, 5];
        assert_eq!(
            kept(&days),
            [10 * DAY_MS - HOUR_MS, 9 * DAY_MS - 1, 5],
            "one a day"
        );
    }

    #[test]
    fn the_newest_stays_however_old_it_is() {
        assert_eq!(kept(&[90 * DAY_MS, 80 * DAY_MS]), [80 * DAY_MS]);
        assert_eq!(kept(&[90 * DAY_MS, 1]), [1]);
    }

    #[test]
    fn a_box_has_a_hundred_at_most() {
        let ages: Vec<i64> = (0..300).rev().collect();
        let kept = kept(&ages);
        assert_eq!(kept.len(), POINTS_PER_BOX_MAX);
        assert_eq!(kept.last(), Some(&0), "the newest");
        assert_eq!(kept.first(), Some(&99), "the oldest are gone");
    }

    #[test]
    fn points_of_a_clock_that_went_back_do_no_harm() {
        assert_eq!(kept(&[-5 * DAY_MS, -1]), [-5 * DAY_MS, -1]);
    }

    #[test]
    fn a_disk_that_is_not_there_takes_nothing_away() {
        assert!(!is_short_at(Path::new("/nonexistent/folder")));
    }
}
