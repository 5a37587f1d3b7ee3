//! Looks at every running box again and again, and does what [`super::step`] says.

use super::runs;
use super::step::{Act, Look, Since, Watched};
use super::still::freeze_idle;
use super::touch::{Pulse, Still, see, see_thawed};
use crate::boxes::{self, BoxRecord, rows};
use crate::events::{self, size};
use crate::host::Host;
use crate::lifecycle::{self, STOP_GRACE};
use crate::processes;
use crate::store::StoreError;
use crate::thread;
use box_api::BoxId;
use box_api::control::{BoxState, EventKind};
use box_runtime::{Disk, DiskEvent, DiskShort, Fullness, RuntimeError};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::MissedTickBehavior;

/// How often boxes are looked at. What kills a box is seen at its end as well.
pub const LOOK_EVERY: Duration = Duration::from_secs(2);

/// What is known of each running box from the looks before.
#[derive(Debug, Default)]
pub struct Watch(HashMap<BoxId, OneRun>);

/// A box and which of its runs this is about.
#[derive(Debug)]
struct OneRun {
    run: u32,
    watched: Watched,
}

/// Looks until the host ends.
pub async fn run(host: Arc<Host>) {
    let mut watch = Watch::default();
    let mut ticks = tokio::time::interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Err(error) = watch.look(&host).await {
            tracing::warn!(
                why = boxes::reason(&error),
                "running boxes were not looked at"
            );
        }
    }
}

impl Watch {
    /// One look at every running box.
    ///
    /// # Errors
    /// What the store said. What an engine said concerns its box alone and is logged.
    pub async fn look(&mut self, host: &Arc<Host>) -> Result<(), StoreError> {
        let mut records = host.store.read(rows::all).await?;
        let known: Vec<BoxId> = records.iter().map(|record| record.id).collect();
        host.touches.keep(&known).await;
        records.retain(|record| record.state == BoxState::Running);
        self.0
            .retain(|id, _| records.iter().any(|record| record.id == *id));
        for record in records {
            self.look_at(host, &record).await?;
        }
        Ok(())
    }

    async fn look_at(&mut self, host: &Arc<Host>, record: &BoxRecord) -> Result<(), StoreError> {
        let limiter = host
            .runtime_of(record)
            .ok()
            .and_then(|runtime| runtime.limiter());
        let Some(limiter) = limiter else {
            return Ok(());
        };
        let usage = match limiter.usage(&record.id).await {
            Ok(usage) => usage,
            // Whoever sees to its end will tell.
            Err(RuntimeError::NotRunning(_) | RuntimeError::NotFound(_)) => return Ok(()),
            Err(error) => {
                let why = boxes::reason(&error);
                tracing::warn!(id = %record.id, why, "a box cannot be looked at");
                return Ok(());
            }
        };
        let now_ms = host.now_ms();
        let pulse = host.touches.of(record.id, now_ms).await;
        if !usage.frozen {
            see_thawed(host, record, &pulse).await;
        }
        let traffic = host.live.traffic(&record.id, now_ms);
        let look = Look {
            now_ms,
            moves_bytes: traffic.sent_per_second > 0 || traffic.received_per_second > 0,
            freeze_after_ms: freeze_after(host, record),
            usage,
            held: pulse.is_held(),
            touched_ms: pulse.last_ms(),
            limits: record.limits,
            settings: record.settings.clone(),
        };
        let since = match pulse.runs() {
            0 => Since::Before,
            _ => Since::ThisHost,
        };
        let known = self.0.remove(&record.id);
        let mut one = match known.filter(|one| one.run == pulse.runs()) {
            Some(one) => one,
            None => OneRun {
                run: pulse.runs(),
                watched: Watched::new(runs::get(host, record.id).await?, &look, since),
            },
        };
        let acts = one.watched.step(&look);
        self.0.insert(record.id, one);
        for act in acts {
            do_it(host, record, &pulse, act).await?;
        }
        Ok(())
    }
}

async fn do_it(
    host: &Arc<Host>,
    record: &BoxRecord,
    pulse: &Pulse,
    act: Act,
) -> Result<(), StoreError> {
    match act {
        Act::Tell(kind, text) => events::note(host, record.id, kind, text).await,
        Act::Beat => {
            pulse.beat(host.now_ms());
            Ok(())
        }
        Act::Keep(counted) => runs::keep(host, record.id, counted).await,
        Act::Freeze { idle_ms } => {
            // A turn is work even while the agent waits for its model, and so is what was started to
            // outlive its caller even while it sleeps (C96).
            if turn_is_open(host, record.id).await? || processes::run_in(host, record.id).await? {
                pulse.beat(host.now_ms());
                return Ok(());
            }
            if let Err(error) = freeze_idle(host, record, pulse, idle_ms).await {
                // Tried again after as long a time.
                pulse.beat(host.now_ms());
                tracing::warn!(id = %record.id, why = boxes::reason(&error), "an idle box runs on");
            }
            Ok(())
        }
        Act::Stop { why } => {
            events::note(host, record.id, EventKind::Deadline, why.clone()).await?;
            let (host, id) = (Arc::clone(host), record.id);
            // Its grace is not waited for here: other boxes have deadlines too.
            tokio::spawn(async move {
                if let Err(error) = lifecycle::stop_because(&host, id, STOP_GRACE, why).await {
                    tracing::error!(%id, why = boxes::reason(&error), "a box runs past its deadline");
                }
            });
            Ok(())
        }
    }
}

/// What the box says, else what the settings do (D12); 0 is never.
pub(crate) fn freeze_after(host: &Host, record: &BoxRecord) -> Option<u64> {
    let freezes = host.runtime_of(record).ok()?.freezer().is_some();
    let ms = record.settings.freeze_after_ms;
    let ms = ms.unwrap_or(host.settings.freeze_after_ms.value);
    (freezes && ms > 0).then_some(ms)
}

async fn turn_is_open(host: &Host, id: BoxId) -> Result<bool, StoreError> {
    let threads = thread::list(host, id).await?;
    Ok(threads
        .iter()
        .any(|thread| thread.state.is_busy() || thread.background > 0))
}

/// Notes what befalls boxes for their use of the disk, for as long as the host lives.
pub async fn disk(host: Arc<Host>) {
    let watches = host.runtimes.all().map(|runtime| {
        let (host, runtime) = (Arc::clone(&host), Arc::clone(runtime));
        async move {
            let Some(disk) = runtime.disk() else { return };
            disk.keep_free(host.settings.store_reserve_bytes.value.unwrap_or(0));
            loop {
                note_disk(&host, disk).await;
            }
        }
    });
    let mut tasks = tokio::task::JoinSet::new();
    watches.for_each(|watch| {
        tasks.spawn(watch);
    });
    while tasks.join_next().await.is_some() {}
}

async fn note_disk(host: &Host, disk: &dyn Disk) {
    let event = disk.next_event().await;
    let now = match event.full {
        Fullness::Full => Still::Yes,
        Fullness::Room => Still::No,
    };
    see(host, event.id, now).await;
    let (kind, text) = disk_text(&event);
    events::try_note(host, event.id, kind, text).await;
}

fn disk_text(event: &DiskEvent) -> (EventKind, String) {
    let (used, limit) = (size(event.used_bytes), size(event.limit_bytes));
    match (event.full, event.short) {
        (Fullness::Full, DiskShort::Limit) => (
            EventKind::DiskFull,
            format!(
                "its disk is full: {used} of {limit} are in use; it stands still until `box set` \
                 gives it more `disk` or `box exec` removes something"
            ),
        ),
        (Fullness::Full, DiskShort::Machine) => (
            EventKind::DiskFull,
            format!(
                "the machine's disk is nearly full, and the box, which uses {used}, wrote to it; \
                 it stands still until there is space"
            ),
        ),
        (Fullness::Room, _) => (
            EventKind::DiskRoom,
            format!("there is room on its disk again: {used} of {limit} are in use"),
        ),
    }
}
