//! Many different hosts refused in a short time: somebody tries doors.

use super::Seen;
use box_api::egress::Reason;
use box_api::egress::traffic::SignalKind;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::{Duration, Instant};

const WITHIN: Duration = Duration::from_mins(1);
/// Different hosts. A browser on a page full of third parties names some dozen.
const HOSTS_MAX: usize = 64;

/// Hosts that were refused lately, by their hashes.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    since: Option<Instant>,
    hosts: HashSet<u64>,
}

/// Whether a refusal is of a box that tried to reach a host it may not.
pub(super) fn is_a_try(reason: Reason) -> bool {
    // Whatever else there is or will be is a fault, not a try.
    matches!(
        reason,
        Reason::NotListed
            | Reason::Denied
            | Reason::Port
            | Reason::IpLiteral
            | Reason::LocalName
            | Reason::PrivateAddress
            | Reason::UnknownAddress
    )
}

impl Refusals {
    pub(super) fn see(&mut self, host: &str, now: Instant) -> Option<Seen> {
        let since = *self.since.get_or_insert(now);
        if now.saturating_duration_since(since) > WITHIN {
            self.since = Some(now);
            self.hosts.clear();
        }
        let mut hasher = DefaultHasher::new();
        host.hash(&mut hasher);
        if !self.hosts.insert(hasher.finish()) || self.hosts.len() < HOSTS_MAX {
            return None;
        }
        let count = self.hosts.len() as u64;
        self.hosts.clear();
        Some(Seen {
            kind: SignalKind::ManyRefused,
            host: String::new(),
            count,
        })
    }
}
