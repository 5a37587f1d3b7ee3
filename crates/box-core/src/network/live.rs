//! Connections that are open at this moment, and how fast bytes go. In memory alone: box-egress
//! tells of every open connection again and again, so that a host which starts later has them too.

use box_api::BoxId;
use box_api::control::Traffic;
use box_api::egress::Passed;
use box_api::egress::traffic::{Open, Signal};
use box_api::network::{NetLine, NetProcess};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use tokio::sync::{Mutex, Semaphore, mpsc, watch};

/// A connection that nothing was heard of for so long is over, though its end was not told.
const SILENT_MS_MAX: i64 = 5 * 60 * 1000;
/// Open connections of one box that are known; it can have a few more.
const OPEN_MAX: usize = 4096;
/// Over which time bytes a second are counted: box-egress tells every three seconds.
const RATE_MS: i64 = 6000;
/// Counts within that time.
const COUNTS_MAX: usize = 256;
/// Signals nobody has taken up yet. They cool down in box-egress: more are a fault.
const SIGNALS_MAX: usize = 256;
/// Programs that are looked for at once.
const LOOKUPS_MAX: usize = 4;

/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct Live(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    boxes: watch::Sender<HashMap<BoxId, OneBox>>,
    raised: mpsc::Sender<Signal>,
    taken: Mutex<mpsc::Receiver<Signal>>,
    lookups: Arc<Semaphore>,
    /// Boxes whose models cost something since somebody looked at their budgets.
    spent: watch::Sender<BTreeSet<BoxId>>,
}

impl Default for Live {
    fn default() -> Self {
        let (raised, taken) = mpsc::channel(SIGNALS_MAX);
        Self(Arc::new(Inner {
            boxes: watch::channel(HashMap::new()).0,
            raised,
            taken: Mutex::new(taken),
            lookups: Arc::new(Semaphore::new(LOOKUPS_MAX)),
            spent: watch::channel(BTreeSet::new()).0,
        }))
    }
}

#[derive(Debug, Default)]
struct OneBox {
    open: HashMap<u64, OneOpen>,
    counts: VecDeque<Count>,
}

#[derive(Debug)]
struct OneOpen {
    told: Open,
    process: Option<NetProcess>,
    heard_at_ms: i64,
}

/// Bytes that went between two tellings.
#[derive(Debug, Clone, Copy)]
struct Count {
    at_ms: i64,
    sent: u64,
    received: u64,
}

/// Whether a connection was heard of for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    First,
    Again,
}

impl OneBox {
    fn count(&mut self, now_ms: i64, (sent, received): (u64, u64)) {
        self.counts.retain(|count| count.at_ms > now_ms - RATE_MS);
        if (sent, received) == (0, 0) {
            return;
        }
        let is_full = self.counts.len() >= COUNTS_MAX;
        match self.counts.back_mut() {
            Some(last) if is_full => {
                last.sent += sent;
                last.received += received;
            }
            Some(_) | None => self.counts.push_back(Count {
                at_ms: now_ms,
                sent,
                received,
            }),
        }
    }

    fn hear(&mut self, told: Open, now_ms: i64) -> Heard {
        self.open
            .retain(|_, one| one.heard_at_ms > now_ms - SILENT_MS_MAX);
        // box-egress that was started anew counts from one again.
        let known = self.open.get(&told.connection);
        let known = known.filter(|known| known.told.began_at_ms == told.began_at_ms);
        let before = known.map_or((0, 0), |known| bytes_of(&known.told));
        let process = known.and_then(|known| known.process.clone());
        let heard = if known.is_some() {
            Heard::Again
        } else {
            Heard::First
        };
        let more = bytes_of(&told);
        let more = (
            more.0.saturating_sub(before.0),
            more.1.saturating_sub(before.1),
        );
        self.count(now_ms, more);
        if self.open.len() < OPEN_MAX || heard == Heard::Again {
            let one = OneOpen {
                process,
                heard_at_ms: now_ms,
                told,
            };
            self.open.insert(one.told.connection, one);
        }
        heard
    }

    fn close(&mut self, passed: &Passed, now_ms: i64) -> Option<NetProcess> {
        let (mut before, mut process) = ((0, 0), None);
        for connection in &passed.connections {
            let is_it = |one: &OneOpen| {
                one.told.host == passed.host && one.told.began_at_ms >= passed.began_at_ms
            };
            if !self.open.get(connection).is_some_and(is_it) {
                continue;
            }
            let Some(one) = self.open.remove(connection) else {
                continue;
            };
            let (sent, received) = bytes_of(&one.told);
            before = (before.0 + sent, before.1 + received);
            process = one.process.or(process);
        }
        let more = (
            passed.sent_bytes.saturating_sub(before.0),
            passed.received_bytes.saturating_sub(before.1),
        );
        self.count(now_ms, more);
        process
    }
}

fn bytes_of(told: &Open) -> (u64, u64) {
    (told.sent_bytes, told.received_bytes)
}

impl Live {
    /// box-egress tells of a connection that is open.
    pub(crate) fn hear(&self, told: Open, now_ms: i64) -> Heard {
        let mut heard = Heard::Again;
        self.change(|boxes| {
            heard = boxes.entry(told.box_id).or_default().hear(told, now_ms);
        });
        heard
    }

    /// Connections are over. Gives the program that had the last of them.
    pub(crate) fn close(&self, passed: &Passed, now_ms: i64) -> Option<NetProcess> {
        let mut process = None;
        self.change(|boxes| {
            let one = boxes.entry(passed.box_id).or_default();
            process = one.close(passed, now_ms);
        });
        process
    }

    /// The program of a connection was found out. Says whether the connection is still open.
    pub(crate) fn found(&self, of: &Open, process: &NetProcess) -> bool {
        let mut is_open = false;
        self.change(|boxes| {
            let one = boxes.get_mut(&of.box_id);
            let one = one.and_then(|one| one.open.get_mut(&of.connection));
            if let Some(one) = one.filter(|one| one.told.began_at_ms == of.began_at_ms) {
                one.process = Some(process.clone());
                is_open = true;
            }
        });
        is_open
    }

    /// The box ended, and all its connections with it.
    pub(crate) fn forget(&self, id: &BoxId) {
        self.change(|boxes| drop(boxes.remove(id)));
    }

    fn change(&self, change: impl FnOnce(&mut HashMap<BoxId, OneBox>)) {
        // Whoever shows connections is woken by the log.
        self.0.boxes.send_if_modified(|boxes| {
            change(boxes);
            false
        });
    }

    /// What is open, the oldest first.
    pub fn lines(&self, id: &BoxId) -> Vec<NetLine> {
        let boxes = self.0.boxes.borrow();
        let mut open: Vec<&OneOpen> = boxes
            .get(id)
            .map(|one| one.open.values().collect())
            .unwrap_or_default();
        open.sort_by_key(|one| (one.told.began_at_ms, one.told.connection));
        open.into_iter().map(line).collect()
    }

    /// What goes through now. What went through before is in the rows.
    pub fn traffic(&self, id: &BoxId, now_ms: i64) -> Traffic {
        let boxes = self.0.boxes.borrow();
        let Some(one) = boxes.get(id) else {
            return Traffic::default();
        };
        let open = one.open.values();
        let (sent_bytes, received_bytes) = open.fold((0, 0), |(sent, received), one| {
            (
                sent + one.told.sent_bytes,
                received + one.told.received_bytes,
            )
        });
        let lately = one.counts.iter();
        let lately = lately.filter(|count| count.at_ms > now_ms - RATE_MS);
        let (sent, received) = lately.fold((0, 0), |(sent, received), count| {
            (sent + count.sent, received + count.received)
        });
        let seconds = RATE_MS.unsigned_abs() / 1000;
        Traffic {
            sent_bytes,
            received_bytes,
            sent_per_second: sent / seconds,
            received_per_second: received / seconds,
            open: u32::try_from(one.open.len()).unwrap_or(u32::MAX),
        }
    }

    /// box-egress tells of a signal.
    pub(crate) fn raise(&self, signal: Signal) {
        if let Err(error) = self.0.raised.try_send(signal) {
            tracing::error!(%error, "a signal was not taken up");
        }
    }

    /// The next signal. For the one task that acts on them.
    pub(crate) async fn signal(&self) -> Option<Signal> {
        self.0.taken.lock().await.recv().await
    }

    /// The budgets of a box are to be looked at.
    pub(crate) fn spend(&self, id: BoxId) {
        self.0.spent.send_if_modified(|spent| spent.insert(id));
    }

    /// Boxes whose budgets are to be looked at; waits until there are some. For the one task that
    /// looks.
    pub(crate) async fn spent(&self) -> BTreeSet<BoxId> {
        let mut changed = self.0.spent.subscribe();
        // The sender lives as long as this.
        drop(changed.wait_for(|spent| !spent.is_empty()).await);
        self.0.spent.send_replace(BTreeSet::new())
    }

    /// Room to look for one more program, if there is any.
    pub(crate) fn lookup(&self) -> Option<tokio::sync::OwnedSemaphorePermit> {
        Arc::clone(&self.0.lookups).try_acquire_owned().ok()
    }
}

fn line(one: &OneOpen) -> NetLine {
    let told = &one.told;
    NetLine {
        host: format!("{}:{}", told.host, told.port),
        verdict: "allowed".to_owned(),
        rule: told.rule.clone(),
        at_ms: told.at_ms,
        times: 1,
        sent_bytes: told.sent_bytes,
        received_bytes: told.received_bytes,
        credential: told.credential.clone(),
        open: true,
        process: one.process.clone(),
        way: told.entrance.word().to_owned(),
        address: told.address.map(|at| at.to_string()).unwrap_or_default(),
        open_ms: u64::try_from(told.at_ms - told.began_at_ms).unwrap_or_default(),
        exchanges: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
