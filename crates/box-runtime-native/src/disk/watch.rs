//! The task that watches the disk: it looks how full the file systems are, measures the boxes for
//! which that matters, and freezes or thaws.

use super::policy::{Cause, Due, Left, Verdict, Watched};
use super::{Order, counted, found};
use crate::{Engine, NativeRuntime};
use box_api::BoxId;
use box_runtime::{DiskEvent, DiskShort, Freezer as _, Fullness};
use rustix::fs::StatVfs;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

/// What is kept free of a file system unless told: a twentieth, but no less and no more than these,
/// and never more than a quarter of a small one.
const KEPT_SHARE: u64 = 20;
const KEPT_BYTES_MIN: u64 = 1 << 30;
const KEPT_BYTES_MAX: u64 = 20 << 30;
const KEPT_SHARE_MAX: u64 = 4;
/// Between two looks at how full the file systems are, which cost next to nothing.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Time for measurements that can wait, each look.
const IDLE_WORK_MAX: Duration = Duration::from_millis(12);

pub(super) async fn run(
    engine: Weak<Engine>,
    mut orders: mpsc::Receiver<Order>,
    events: mpsc::Sender<DiskEvent>,
    reserve: Arc<AtomicU64>,
) {
    let mut ticks = interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut state = State {
        boxes: HashMap::new(),
        disks: Disks {
            reserve,
            free: None,
        },
        events,
    };
    if let Some(engine) = engine.upgrade() {
        state.boxes.extend(known(&engine));
    }
    loop {
        tokio::select! {
            order = orders.recv() => match order {
                Some(order) => state.take(&order),
                None => return,
            },
            _ = ticks.tick() => {
                let Some(engine) = engine.upgrade() else { return };
                state.look(&engine).await;
            }
        }
    }
}

fn known(engine: &Engine) -> Vec<(BoxId, Watched)> {
    let found = found(&engine.folders).unwrap_or_default();
    let watched = |(id, limit)| (id, Watched::new(limit));
    found.into_iter().map(watched).collect()
}

struct State {
    boxes: HashMap<BoxId, Watched>,
    disks: Disks,
    events: mpsc::Sender<DiskEvent>,
}

impl State {
    fn take(&mut self, order: &Order) {
        match order {
            Order::Limit(id, bytes) => {
                let watched = self.boxes.entry(*id);
                watched
                    .or_insert_with(|| Watched::new(*bytes))
                    .limit(*bytes);
            }
            Order::Forget(id) => drop(self.boxes.remove(id)),
        }
    }

    async fn look(&mut self, engine: &Arc<Engine>) {
        if self.boxes.is_empty() {
            self.disks.free = None;
            return;
        }
        // A file system that cannot be asked now can be in a second.
        let Ok(seen) = self.disks.look(engine.folders.store()) else {
            return;
        };
        for watched in self.boxes.values_mut() {
            watched.grown = watched.grown.saturating_add(seen.grown);
            watched.changed |= seen.changed;
        }
        if seen.left == Left::Critical {
            self.freeze_all(engine).await;
        }
        let now = Instant::now();
        let due = |wanted: Due| {
            let of = self.boxes.iter();
            let of = of.filter(|(_, watched)| watched.due(now, seen.left) == wanted);
            of.map(|(id, _)| *id).collect::<Vec<BoxId>>()
        };
        let (urgent, others) = (due(Due::Now), due(Due::WhenIdle));
        for id in urgent {
            self.measure(engine, id, seen.left).await;
        }
        for id in others {
            if now.elapsed() > IDLE_WORK_MAX {
                break;
            }
            self.measure(engine, id, seen.left).await;
        }
    }

    /// There is no time to see who writes.
    async fn freeze_all(&mut self, engine: &Arc<Engine>) {
        let running = |(_, watched): &(&BoxId, &mut Watched)| watched.frozen.is_none();
        for (id, watched) in self.boxes.iter_mut().filter(running) {
            watched.freeze(Cause::Machine);
            drop(runtime(engine).freeze(id).await);
            tell(&self.events, *id, watched, Fullness::Full, Cause::Machine);
        }
    }

    async fn measure(&mut self, engine: &Arc<Engine>, id: BoxId, left: Left) {
        if engine.folders.first_process(&id).is_none() {
            self.boxes.remove(&id);
            return;
        }
        let began = Instant::now();
        let Some(used) = look_at(engine, id).await else {
            return;
        };
        let Some(watched) = self.boxes.get_mut(&id) else {
            return;
        };
        let now = Instant::now();
        let verdict = watched.measured(used, now, now - began, left);
        let (full, cause) = match verdict {
            Verdict::Nothing => return,
            Verdict::Freeze(cause) => {
                // One that cannot be frozen is told of all the same, and tried again when it grows.
                drop(runtime(engine).freeze(&id).await);
                (Fullness::Full, cause)
            }
            Verdict::Thaw(cause) => {
                drop(runtime(engine).thaw(&id).await);
                (Fullness::Room, cause)
            }
        };
        tell(&self.events, id, watched, full, cause);
    }
}

/// Nobody reads them: boxes are watched on.
fn tell(
    events: &mpsc::Sender<DiskEvent>,
    id: BoxId,
    watched: &Watched,
    full: Fullness,
    cause: Cause,
) {
    let event = DiskEvent {
        id,
        used_bytes: watched.used,
        limit_bytes: watched.limit,
        full,
        short: match cause {
            Cause::Limit => DiskShort::Limit,
            Cause::Machine => DiskShort::Machine,
        },
    };
    let _ = events.try_send(event);
}

fn runtime(engine: &Arc<Engine>) -> NativeRuntime {
    NativeRuntime {
        engine: Arc::clone(engine),
    }
}

/// What a box uses. One that moves its folders about while they are counted stands still for it; one
/// that cannot be counted even so, having made more of them than anybody needs, is over any limit.
async fn look_at(engine: &Arc<Engine>, id: BoxId) -> Option<u64> {
    let count = || {
        let engine = Arc::clone(engine);
        tokio::task::spawn_blocking(move || counted(&engine.folders, &id))
    };
    if let Ok(Ok(used)) = count().await {
        return Some(used);
    }
    let runtime = runtime(engine);
    runtime.freeze(&id).await.ok()?;
    let used = count().await;
    // What it is found to use decides whether it is frozen again.
    drop(runtime.thaw(&id).await);
    let there = engine.folders.has(&id);
    used.ok()?.ok().or(there.then_some(u64::MAX))
}

/// The file systems boxes fill: the store's, and the one its file lies on if it has one.
#[derive(Debug)]
struct Disks {
    /// What is kept free; 0: nobody said.
    reserve: Arc<AtomicU64>,
    /// Bytes and files free in the store at the last look.
    free: Option<u64>,
}

struct Seen {
    left: Left,
    grown: u64,
    changed: bool,
}

impl Disks {
    fn look(&mut self, store: &Path) -> io::Result<Seen> {
        let about = rustix::fs::statvfs(store)?;
        let free = about.f_bavail.saturating_mul(about.f_frsize);
        let before = self.free.replace(free);
        let mut left = self.left(&about);
        if let Some(below) = below_the_store(store) {
            left = left.worse(self.left(&rustix::fs::statvfs(&below)?));
        }
        Ok(Seen {
            left,
            grown: before.map_or(0, |before| before.saturating_sub(free)),
            changed: before.is_none_or(|before| before != free),
        })
    }

    fn left(&self, about: &StatVfs) -> Left {
        let whole = about.f_blocks.saturating_mul(about.f_frsize);
        let free = about.f_bavail.saturating_mul(about.f_frsize);
        let usual = (whole / KEPT_SHARE).clamp(KEPT_BYTES_MIN, KEPT_BYTES_MAX);
        let kept = match self.reserve.load(Ordering::Relaxed) {
            0 => usual,
            told => told,
        };
        let kept = kept.min(whole / KEPT_SHARE_MAX);
        let bytes = Left::of(free, kept);
        // btrfs makes inodes as it needs them, and says zero.
        let files = Left::of(about.f_favail, about.f_files / KEPT_SHARE);
        bytes.worse(if about.f_files == 0 {
            Left::Enough
        } else {
            files
        })
    }
}

/// The data folder, when the store is a file system of its own in it.
fn below_the_store(store: &Path) -> Option<PathBuf> {
    let data = store.parent()?.parent()?;
    crate::storage::loopback::is_made(data).then(|| data.to_owned())
}
