//! The threads of the host that somebody drives.

use super::driver::{self, World};
use super::machine::BoxMachine;
use super::mail::{LETTERS_MAX, ThreadError, ThreadHandle};
use super::saved;
use crate::acp::LINE_OUT_BYTES_MAX;
use crate::agents;
use crate::decisions;
use crate::host::Host;
use crate::journal::Feed;
use crate::store::{Store, StoreError};
use box_api::{DecisionId, ThreadId};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tokio::sync::{Mutex, OnceCell, broadcast, mpsc};

/// Changes a listener may be behind before it is told that it missed some.
const CHANGES_HELD_MAX: usize = 256;

/// The running threads. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Threads(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    running: Mutex<HashMap<ThreadId, ThreadHandle>>,
    /// The number of the newest decision.
    decisions: OnceCell<Arc<AtomicI64>>,
    changes: Changes,
}

/// Threads whose line in a list may be another one now. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Changes(broadcast::Sender<ThreadId>);

impl Default for Changes {
    fn default() -> Self {
        Self(broadcast::channel(CHANGES_HELD_MAX).0)
    }
}

impl Changes {
    pub(super) fn tell(&self, thread: ThreadId) {
        // Nobody may be listening, and that is fine.
        drop(self.0.send(thread));
    }
}

impl Threads {
    /// A handle on a thread; whoever asks first makes the host take it up.
    ///
    /// # Errors
    /// [`ThreadError::Unknown`], or what the store said.
    pub async fn handle(
        &self,
        host: &Arc<Host>,
        thread: ThreadId,
    ) -> Result<ThreadHandle, ThreadError> {
        let mut running = self.0.running.lock().await;
        if let Some(handle) = running.get(&thread).filter(|handle| !handle.is_closed()) {
            return Ok(handle.clone());
        }
        running.retain(|_, handle| !handle.is_closed());
        let record = host
            .store
            .read(move |tables| saved::get(tables, thread))
            .await?;
        let record = record.ok_or(ThreadError::Unknown(thread))?;
        let world = World {
            store: host.store.clone(),
            clock: Arc::clone(&host.clock),
            changes: self.0.changes.clone(),
            decisions: self.decisions(&host.store).await?,
            machine: Arc::new(BoxMachine::new(host, record.box_id, &record.agent)),
            hold: decisions::Hold::of(&host.settings),
        };
        let line_bytes_max = agents::find(&record.agent).map_or(LINE_OUT_BYTES_MAX, |profile| {
            profile.quirks.input_line_bytes_max
        });
        let (mail, letters) = mpsc::channel(LETTERS_MAX);
        let feed = Feed::default();
        let handle = ThreadHandle::new(
            record,
            line_bytes_max,
            (mail, feed.clone()),
            host.store.clone(),
        );
        tokio::spawn(driver::run(world, thread, feed, letters));
        running.insert(thread, handle.clone());
        Ok(handle)
    }

    /// Hears which threads' state, title, queue or tasks changed, after it is committed; rows of
    /// journals come by subscription. One that is behind reads the list again.
    pub fn listen(&self) -> broadcast::Receiver<ThreadId> {
        self.0.changes.0.subscribe()
    }

    pub(super) fn changed(&self, thread: ThreadId) {
        self.0.changes.tell(thread);
    }

    /// Takes up every thread an earlier host left with a process or an open turn. Called once,
    /// after the boxes are reconciled. Says how many there were.
    ///
    /// # Errors
    /// What the store said.
    pub async fn resume(host: &Arc<Host>) -> Result<usize, ThreadError> {
        let unfinished = host.store.read(saved::unfinished).await?;
        for thread in &unfinished {
            host.threads.handle(host, *thread).await?;
        }
        Ok(unfinished.len())
    }

    /// A number for a decision that no thread asks.
    ///
    /// # Errors
    /// What the store said.
    pub(crate) async fn next_decision(&self, store: &Store) -> Result<DecisionId, StoreError> {
        let counter = self.decisions(store).await?;
        Ok(DecisionId(counter.fetch_add(1, Ordering::SeqCst) + 1))
    }

    async fn decisions(&self, store: &Store) -> Result<Arc<AtomicI64>, StoreError> {
        let counter = self.0.decisions.get_or_try_init(|| async {
            let highest = store.read(decisions::highest).await?;
            Ok::<_, StoreError>(Arc::new(AtomicI64::new(highest)))
        });
        counter.await.cloned()
    }
}
