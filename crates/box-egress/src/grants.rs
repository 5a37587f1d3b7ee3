//! Hosts that were let through once, by a person who was asked.

use box_api::egress::HostName;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How long an answer waits for its connection to be tried again.
const UNUSED_FOR: Duration = Duration::from_mins(15);
/// From the first connection on: clients open several at a time, and one more when one breaks.
const USED_FOR: Duration = Duration::from_mins(1);
/// Answers that wait; the oldest goes first.
const WAITING_MAX: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Once {
    host: HostName,
    port: u16,
    until: Instant,
    is_used: bool,
}

/// What one box was let through to.
#[derive(Debug)]
pub(crate) struct Grants(watch::Sender<Vec<Once>>);

impl Default for Grants {
    fn default() -> Self {
        Self(watch::channel(Vec::new()).0)
    }
}

impl Grants {
    pub(crate) fn give(&self, host: HostName, port: u16, now: Instant) {
        self.0.send_modify(|all| {
            all.retain(|once| once.until > now && (once.host != host || once.port != port));
            if all.len() == WAITING_MAX {
                all.remove(0);
            }
            all.push(Once {
                host,
                port,
                until: now + UNUSED_FOR,
                is_used: false,
            });
        });
    }

    /// Whether a connection may pass; the first one starts the clock.
    pub(crate) fn take(&self, host: &HostName, port: u16, now: Instant) -> bool {
        let mut passes = false;
        // Nobody who waits is woken: a grant that is taken lets nothing more through.
        self.0.send_if_modified(|all| {
            all.retain(|once| once.until > now);
            let mut granted = all.iter_mut();
            let granted = granted.find(|once| once.host == *host && once.port == port);
            passes = granted.is_some();
            if let Some(once) = granted.filter(|once| !once.is_used) {
                once.is_used = true;
                once.until = now + USED_FOR;
            }
            false
        });
        passes
    }

    /// Returns at the next [`Grants::give`] after the receiver was made.
    pub(crate) fn watch(&self) -> watch::Receiver<impl Sized + use<>> {
        self.0.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> HostName {
        HostName::parse(text).unwrap()
    }

    #[test]
    fn a_grant_is_for_one_host_and_port_and_ends() {
        let (grants, start) = (Grants::default(), Instant::now());
        let at = |after| start + after;
        grants.give(host("new.test"), 443, start);
        assert!(!grants.take(&host("other.test"), 443, start));
        assert!(!grants.take(&host("new.test"), 80, start));
        let first = at(Duration::from_mins(14));
        assert!(grants.take(&host("new.test"), 443, first));
        let again = first + Duration::from_secs(59);
        assert!(grants.take(&host("new.test"), 443, again), "not prolonged");
        assert!(!grants.take(&host("new.test"), 443, first + USED_FOR));
    }

    #[test]
    fn a_grant_nobody_used_ends() {
        let (grants, start) = (Grants::default(), Instant::now());
        grants.give(host("new.test"), 443, start);
        assert!(!grants.take(&host("new.test"), 443, start + UNUSED_FOR));
    }
}
