//! What went to and came from each host of a box, over all its connections, for the budget.

use box_api::egress::HostName;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{Notify, watch};

/// Hosts that are counted apart. What comes after that is counted as one host: no box can get
/// round its budget by naming many.
const HOSTS_MAX: usize = 4096;
/// What a box sends to one host before somebody is told, and again at each doubling. Uploads of
/// ordinary work (pushes, images, model requests of a long day) stay below it.
const SENT_ALARM_BYTES: u64 = 1 << 30;

/// Bytes of one host.
#[derive(Debug)]
pub(crate) struct Spent {
    sent: AtomicU64,
    received: AtomicU64,
    /// Whoever waits is woken once as much went through.
    wake_at: AtomicU64,
    woken: Notify,
    alarm_at: AtomicU64,
}

impl Default for Spent {
    fn default() -> Self {
        Self {
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            wake_at: AtomicU64::new(u64::MAX),
            woken: Notify::new(),
            alarm_at: AtomicU64::new(SENT_ALARM_BYTES),
        }
    }
}

impl Spent {
    pub(crate) fn sent(&self, bytes: u64) {
        self.sent.fetch_add(bytes, Ordering::Relaxed);
        self.wake();
    }

    pub(crate) fn received(&self, bytes: u64) {
        self.received.fetch_add(bytes, Ordering::Relaxed);
        self.wake();
    }

    fn wake(&self) {
        if self.total() >= self.wake_at.load(Ordering::Relaxed) {
            self.woken.notify_waiters();
        }
    }

    /// Both ways together.
    pub(crate) fn total(&self) -> u64 {
        let sent = self.sent.load(Ordering::Relaxed);
        sent.saturating_add(self.received.load(Ordering::Relaxed))
    }

    /// Whether a budget is used up.
    pub(crate) fn exceeds(&self, budget: Option<u64>) -> bool {
        budget.is_some_and(|budget| self.total() >= budget)
    }

    /// Returns once as much went through as the budget says; never without one.
    pub(crate) async fn used_up(&self, budget: Option<u64>) {
        let Some(budget) = budget else {
            return std::future::pending().await;
        };
        self.wake_at.store(budget, Ordering::Relaxed);
        loop {
            // Waits from before the look, so that nothing is missed.
            let woken = self.woken.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            if self.total() >= budget {
                return;
            }
            woken.await;
        }
    }

    /// What was sent, when that is as much as is told of.
    pub(crate) fn alarm(&self) -> Option<u64> {
        let sent = self.sent.load(Ordering::Relaxed);
        let alarmed = self
            .alarm_at
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |at| {
                (sent >= at).then(|| doubled_past(at, sent))
            });
        alarmed.is_ok().then_some(sent)
    }
}

fn doubled_past(mut at: u64, sent: u64) -> u64 {
    while at <= sent {
        let Some(next) = at.checked_mul(2) else {
            return u64::MAX;
        };
        at = next;
    }
    at
}

/// Every host a box had to do with.
#[derive(Debug)]
pub(crate) struct Ledger(watch::Sender<Hosts>);

#[derive(Debug, Default)]
struct Hosts {
    named: HashMap<HostName, Arc<Spent>>,
    others: Arc<Spent>,
}

impl Default for Ledger {
    fn default() -> Self {
        Self(watch::channel(Hosts::default()).0)
    }
}

impl Ledger {
    /// The count of one host.
    pub(crate) fn of(&self, host: &HostName) -> Arc<Spent> {
        if let Some(known) = self.0.borrow().named.get(host) {
            return Arc::clone(known);
        }
        let mut spent = None;
        self.0.send_if_modified(|hosts| {
            let is_full = hosts.named.len() >= HOSTS_MAX;
            spent = Some(match hosts.named.get(host) {
                Some(known) => Arc::clone(known),
                None if is_full => Arc::clone(&hosts.others),
                None => Arc::clone(hosts.named.entry(host.clone()).or_default()),
            });
            false
        });
        spent.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> HostName {
        HostName::parse(text).unwrap()
    }

    #[test]
    fn connections_to_one_host_share_a_count_and_hosts_do_not() {
        let ledger = Ledger::default();
        ledger.of(&host("a.test")).sent(60);
        ledger.of(&host("a.test")).received(60);
        ledger.of(&host("b.test")).sent(1);
        assert!(ledger.of(&host("a.test")).exceeds(Some(120)));
        assert!(!ledger.of(&host("a.test")).exceeds(Some(121)));
        assert!(!ledger.of(&host("a.test")).exceeds(None));
        assert!(!ledger.of(&host("b.test")).exceeds(Some(2)));
    }

    #[test]
    fn naming_many_hosts_gets_nobody_round_a_budget() {
        let ledger = Ledger::default();
        for number in 0..HOSTS_MAX {
            ledger.of(&host(&format!("h{number}.test")));
        }
        ledger.of(&host("late.test")).sent(100);
        assert!(ledger.of(&host("later.test")).exceeds(Some(100)));
        assert!(!ledger.of(&host("h1.test")).exceeds(Some(100)));
    }

    #[test]
    fn much_that_was_sent_is_told_at_each_doubling() {
        let spent = Spent::default();
        spent.received(SENT_ALARM_BYTES * 9);
        assert_eq!(spent.alarm(), None, "downloads are ordinary");
        spent.sent(SENT_ALARM_BYTES);
        assert_eq!(spent.alarm(), Some(SENT_ALARM_BYTES));
        assert_eq!(spent.alarm(), None, "told once");
        spent.sent(SENT_ALARM_BYTES * 5);
        assert_eq!(spent.alarm(), Some(SENT_ALARM_BYTES * 6));
        spent.sent(SENT_ALARM_BYTES);
        assert_eq!(spent.alarm(), None);
    }

    #[tokio::test]
    async fn whoever_waits_for_the_end_of_a_budget_is_woken_by_the_byte_that_uses_it_up() {
        let spent = Arc::new(Spent::default());
        spent.sent(9);
        let waiting = Arc::clone(&spent);
        let waits = tokio::spawn(async move { waiting.used_up(Some(10)).await });
        tokio::task::yield_now().await;
        assert!(!waits.is_finished());
        spent.received(1);
        waits.await.unwrap();
    }
}
