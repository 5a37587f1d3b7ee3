//! Who of the parked goes on now: a state machine fed with rows and the time.
//!
//! For each account one goes on at a time, [`STAGGER_MS`] apart, so that a limit that has just been
//! lifted is not hit by everybody at once. If the one that went on is parked again at the limit,
//! the limit is not over: the next one tries after [`RETRY_MS`], or when that limit ends if it is
//! sooner.

use box_api::ThreadId;
use box_api::control::Parking;
use std::collections::BTreeMap;

/// Between two threads of one account that go on.
pub const STAGGER_MS: i64 = 15_000;
/// Between two tries of an account whose limit was not over.
pub const RETRY_MS: i64 = 5 * 60_000;
/// The rows are looked at at least this often: clocks jump, and boxes are started.
pub const LOOK_MS: i64 = 5_000;
/// Shortest wait between two looks.
const LOOK_MS_MIN: i64 = 250;

/// A parked thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub thread: ThreadId,
    pub why: Parking,
    /// UTC milliseconds; absent: somebody resumes it.
    pub until_ms: Option<i64>,
    pub since_ms: i64,
    /// Whose limit it shares.
    pub account: String,
    /// Smaller goes first.
    pub rank: u8,
}

/// What a look leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// In this order.
    pub go_on: Vec<ThreadId>,
    /// Until the next look.
    pub wait_ms: i64,
}

/// What is remembered between looks. A host that starts anew knows nothing, and loses nothing.
#[derive(Debug, Clone, Default)]
pub struct Lot {
    /// When a thread of the account was last let go on.
    last_ms: BTreeMap<String, i64>,
}

impl Lot {
    pub fn look(&mut self, entries: &[Entry], now_ms: i64) -> Look {
        let mut accounts: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
        for entry in entries {
            accounts.entry(&entry.account).or_default().push(entry);
        }
        // An account without anybody has nothing to be staggered, but for a while after the last.
        self.last_ms.retain(|account, last_ms| {
            accounts.contains_key(account.as_str()) || (now_ms - *last_ms).abs() < RETRY_MS
        });
        let mut look = Look {
            go_on: Vec::new(),
            wait_ms: LOOK_MS,
        };
        for (account, parked) in accounts {
            let free_ms = self.free_ms(account, &parked, now_ms);
            let mut due: Vec<&Entry> = parked
                .iter()
                .copied()
                .filter(|entry| entry.until_ms.is_some_and(|until_ms| until_ms <= now_ms))
                .collect();
            due.sort_by_key(|entry| (entry.rank, entry.since_ms, entry.thread));
            let mut left = due.len();
            if let (Some(first), true) = (due.first(), free_ms <= now_ms) {
                look.go_on.push(first.thread);
                self.last_ms.insert(account.to_owned(), now_ms);
                left -= 1;
            }
            let later = parked.iter().filter_map(|entry| entry.until_ms);
            let later = later.filter(|until_ms| *until_ms > now_ms).min();
            let next = match left {
                0 => later,
                _ if free_ms > now_ms => Some(free_ms),
                _ => Some(now_ms + STAGGER_MS),
            };
            if let Some(next) = next {
                look.wait_ms = look.wait_ms.min(next - now_ms).max(LOOK_MS_MIN);
            }
        }
        look
    }

    /// When the next one of the account may go on.
    fn free_ms(&self, account: &str, parked: &[&Entry], now_ms: i64) -> i64 {
        let Some(last_ms) = self.last_ms.get(account).copied() else {
            return now_ms;
        };
        // The clock was put back.
        if last_ms > now_ms {
            return now_ms;
        }
        let again = parked.iter().filter(|entry| {
            entry.why == Parking::Limit && entry.since_ms >= last_ms && entry.since_ms <= now_ms
        });
        let limit = again.filter_map(|entry| entry.until_ms).max();
        match limit {
            Some(limit) if limit > now_ms => limit.min(last_ms + RETRY_MS),
            Some(_) | None => last_ms + STAGGER_MS,
        }
    }
}

#[cfg(test)]
mod tests;
