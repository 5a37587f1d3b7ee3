//! Who touches a box, and the thaw that comes with it.

use super::runs;
use crate::boxes::{self, BoxRecord};
use crate::clock::Clock;
use crate::events;
use crate::host::Host;
use crate::store::StoreError;
use box_api::BoxId;
use box_api::control::EventKind;
use box_runtime::{Execution, RunningProcess, Runtime, RuntimeError};
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use tokio::sync::Mutex;

/// Every box that somebody has touched, or that the host froze.
#[derive(Debug, Default)]
pub struct Touches(Mutex<HashMap<BoxId, Arc<Pulse>>>);

/// Whether the host has frozen a box. A freeze for the moment of a snapshot is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Still {
    #[default]
    No,
    Yes,
    /// For what it did: no touch thaws it, only its owner's own word.
    Kept,
}

/// When a box was touched last, and who holds on to it.
#[derive(Debug)]
pub(super) struct Pulse {
    /// Held while the box is frozen or thawed.
    pub(super) still: Mutex<Still>,
    /// Commands that run, clients that look on.
    open: AtomicU32,
    last_ms: AtomicI64,
    /// How often this host has started or stopped it: what was counted of one run is not of the
    /// next.
    runs: AtomicU32,
}

impl Pulse {
    pub(super) fn is_held(&self) -> bool {
        self.open.load(Ordering::SeqCst) > 0
    }

    pub(super) fn last_ms(&self) -> i64 {
        self.last_ms.load(Ordering::SeqCst)
    }

    pub(super) fn runs(&self) -> u32 {
        self.runs.load(Ordering::SeqCst)
    }

    pub(super) fn beat(&self, now_ms: i64) {
        self.last_ms.store(now_ms, Ordering::SeqCst);
    }
}

impl Touches {
    pub(super) async fn of(&self, id: BoxId, now_ms: i64) -> Arc<Pulse> {
        let mut pulses = self.0.lock().await;
        let pulse = pulses.entry(id).or_insert_with(|| {
            Arc::new(Pulse {
                still: Mutex::default(),
                open: AtomicU32::new(0),
                last_ms: AtomicI64::new(now_ms),
                runs: AtomicU32::new(0),
            })
        });
        Arc::clone(pulse)
    }

    /// Whether the box stands still because the host froze it. One that is being frozen, thawed or
    /// copied at this moment is not.
    pub async fn is_frozen(&self, id: &BoxId) -> bool {
        let pulse = self.0.lock().await.get(id).map(Arc::clone);
        match pulse {
            Some(pulse) => pulse
                .still
                .try_lock()
                .is_ok_and(|still| *still != Still::No),
            None => false,
        }
    }

    /// Lets go of boxes that are gone and that nobody holds.
    pub(super) async fn keep(&self, known: &[BoxId]) {
        let mut pulses = self.0.lock().await;
        pulses.retain(|id, pulse| Arc::strong_count(pulse) > 1 || known.contains(id));
    }

    /// A box that was stopped, or is about to be started, is not frozen any more.
    pub(crate) async fn stopped(&self, id: BoxId, now_ms: i64) {
        let pulse = self.of(id, now_ms).await;
        pulse.runs.fetch_add(1, Ordering::SeqCst);
        pulse.beat(now_ms);
        *pulse.still.lock().await = Still::No;
    }
}

/// A box's engine while somebody wants something of the box. As long as it lives the box is not idle.
#[derive(Debug)]
pub struct Awake {
    runtime: Arc<dyn Runtime>,
    pulse: Arc<Pulse>,
    clock: Arc<dyn Clock>,
}

impl Deref for Awake {
    type Target = dyn Runtime;

    fn deref(&self) -> &Self::Target {
        &*self.runtime
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.pulse.beat(self.clock.now_ms());
        self.pulse.open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Awake {
    /// The command keeps its box awake until it has ended.
    pub fn with(self, execution: Execution) -> Execution {
        let process = Box::new(Held {
            process: execution.process,
            _awake: self,
        });
        Execution {
            streams: execution.streams,
            process,
        }
    }
}

/// A command and its hold on the box.
#[derive(Debug)]
struct Held {
    process: Box<dyn RunningProcess>,
    _awake: Awake,
}

#[async_trait::async_trait]
impl RunningProcess for Held {
    async fn signal(&self, number: i32) -> Result<(), RuntimeError> {
        self.process.signal(number).await
    }

    async fn wait(&self) -> Result<i32, RuntimeError> {
        self.process.wait().await
    }
}

/// The engine of a box that is about to be touched. A frozen box is thawed first; one that does not
/// run is left as it is.
///
/// # Errors
/// As [`Host::runtime_of`], or that the box could not be thawed.
pub async fn awake(host: &Host, record: &BoxRecord) -> Result<Awake, RuntimeError> {
    let runtime = Arc::clone(host.runtime_of(record)?);
    let pulse = host.touches.of(record.id, host.now_ms()).await;
    pulse.open.fetch_add(1, Ordering::SeqCst);
    let awake = Awake {
        runtime,
        pulse,
        clock: Arc::clone(&host.clock),
    };
    let mut still = awake.pulse.still.lock().await;
    match *still {
        Still::No => {}
        Still::Yes => {
            thaw_engine(&*awake.runtime, &record.id).await?;
            set_still(host, record.id, &mut still, Still::No).await;
            let text = "somebody wanted something of it";
            events::try_note(host, record.id, EventKind::Thawed, text).await;
        }
        Still::Kept => return Err(kept(record)),
    }
    drop(still);
    Ok(awake)
}

/// What is told to whoever wants something of a box that was frozen for what it did.
fn kept(record: &BoxRecord) -> RuntimeError {
    let name = &record.name;
    RuntimeError::Refused {
        why: format!("box `{name}` was frozen for what it did over the network"),
        hint: Some(format!(
            "`box events {name}` says what it was; `box thaw {name}` lets it go on"
        )),
    }
}

/// As [`awake`], for whoever has the box's id. A box that is gone is nobody's to touch.
///
/// # Errors
/// As [`awake`].
pub async fn touch(host: &Host, id: BoxId) -> Result<Option<Awake>, RuntimeError> {
    match boxes::get(host, id).await {
        Ok(Some(record)) => awake(host, &record).await.map(Some),
        Ok(None) => Ok(None),
        Err(error) => Err(RuntimeError::engine("find the box", error)),
    }
}

/// Thaws; a box that has ended meanwhile is not frozen.
pub(super) async fn thaw_engine(runtime: &dyn Runtime, id: &BoxId) -> Result<(), RuntimeError> {
    let Some(freezer) = runtime.freezer() else {
        return Ok(());
    };
    match freezer.thaw(id).await {
        Err(RuntimeError::NotRunning(_) | RuntimeError::NotFound(_)) => Ok(()),
        result => result,
    }
}

/// Learns which boxes an earlier host has frozen, so that they stay so. Called once, before rows and
/// engines are compared.
///
/// # Errors
/// What the store said.
pub async fn take_up(host: &Host) -> Result<(), StoreError> {
    for (id, still) in runs::still(host).await? {
        let pulse = host.touches.of(id, host.now_ms()).await;
        *pulse.still.lock().await = still;
    }
    Ok(())
}

/// Corrects the host's idea of a box that somebody else has thawed.
pub(super) async fn see_thawed(host: &Host, record: &BoxRecord, pulse: &Pulse) {
    // Whoever has it knows better.
    let Ok(mut still) = pulse.still.try_lock() else {
        return;
    };
    let limiter = host
        .runtime_of(record)
        .ok()
        .and_then(|runtime| runtime.limiter());
    let Some(limiter) = limiter.filter(|_| *still != Still::No) else {
        return;
    };
    // Once more, for it may have been frozen since the last look; not while this lock is held.
    if limiter
        .usage(&record.id)
        .await
        .is_ok_and(|usage| !usage.frozen)
    {
        set_still(host, record.id, &mut still, Still::No).await;
    }
}

/// Corrects the host's idea of a box that its engine has frozen or thawed by itself.
pub(super) async fn see(host: &Host, id: BoxId, now: Still) {
    let pulse = host.touches.of(id, host.now_ms()).await;
    let mut still = pulse.still.lock().await;
    // One that is kept stays so for its engine as well.
    if (*still == Still::No) != (now == Still::No) {
        set_still(host, id, &mut still, now).await;
    }
}

/// Remembers what a box is now, in memory and for the next host.
pub(super) async fn set_still(host: &Host, id: BoxId, still: &mut Still, to: Still) {
    *still = to;
    if let Err(error) = runs::note_still(host, id, to).await {
        tracing::warn!(%id, %error, "the next host will not know that a box is frozen or thawed");
    }
}
