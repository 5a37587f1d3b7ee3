//! How often a signal is told.

use super::Seen;
use box_api::egress::traffic::SignalKind;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The same kind about the same host is told once in this time.
const SAME_EVERY: Duration = Duration::from_mins(10);
/// As [`SAME_EVERY`] for a placeholder where it does not belong: a box that was frozen for one, and
/// that its owner let go on, is to be frozen again when it goes on so. The host writes it down more
/// rarely.
const THEFT_EVERY: Duration = Duration::from_secs(10);
/// Signals of one box in [`ALL_WITHIN`], whatever they are about.
const ALL_MAX: usize = 12;
const ALL_WITHIN: Duration = Duration::from_mins(10);

/// What was told lately: never more than [`ALL_MAX`].
#[derive(Debug, Default)]
pub(super) struct Cooldown(HashMap<(SignalKind, String), Instant>);

fn every(kind: SignalKind) -> Duration {
    match kind {
        SignalKind::PlaceholderElsewhere
        | SignalKind::PlaceholderOfAnotherBox
        | SignalKind::PlaceholderInPlain => THEFT_EVERY,
        SignalKind::DataInNames
        | SignalKind::CredentialEchoed
        | SignalKind::ManyRefused
        | SignalKind::MuchTraffic => SAME_EVERY,
    }
}

impl Cooldown {
    /// The signal, if it is to be told.
    pub(super) fn admit(&mut self, seen: Seen, now: Instant) -> Option<Seen> {
        let longest = SAME_EVERY.max(ALL_WITHIN);
        self.0
            .retain(|_, told| now.saturating_duration_since(*told) < longest);
        let key = (seen.kind, seen.host.clone());
        if let Some(told) = self.0.get_mut(&key) {
            if now.saturating_duration_since(*told) < every(seen.kind) {
                return None;
            }
            *told = now;
            return Some(seen);
        }
        // A kind that was not told at all yet is told whatever the others have used up.
        let is_new_kind = self.0.keys().all(|(kind, _)| *kind != seen.kind);
        if self.0.len() >= ALL_MAX && !is_new_kind {
            return None;
        }
        self.0.insert(key, now);
        Some(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(kind: SignalKind, host: &str) -> Seen {
        Seen {
            kind,
            host: host.to_owned(),
            count: 1,
        }
    }

    #[test]
    fn the_same_is_told_once_in_a_while() {
        let second = Duration::from_secs(1);
        for (kind, every) in [
            (SignalKind::DataInNames, SAME_EVERY),
            (SignalKind::PlaceholderElsewhere, THEFT_EVERY),
        ] {
            let (mut cooldown, start) = (Cooldown::default(), Instant::now());
            let mut told = |host: &str, after: Duration| {
                cooldown.admit(seen(kind, host), start + after).is_some()
            };
            assert!(told("a.test", Duration::ZERO));
            assert!(!told("a.test", every.saturating_sub(second)));
            assert!(told("b.test", Duration::ZERO), "another host is another");
            assert!(told("a.test", every));
            assert!(!told("a.test", every + second), "counted from then on");
        }
    }

    #[test]
    fn a_flood_of_hosts_is_told_a_few_times_and_hides_no_other_kind() {
        let (mut cooldown, now) = (Cooldown::default(), Instant::now());
        let told = (0..10_000).filter(|number| {
            let seen = seen(SignalKind::DataInNames, &format!("z{number}.test"));
            cooldown.admit(seen, now).is_some()
        });
        assert_eq!(told.count(), ALL_MAX);
        let other = seen(SignalKind::PlaceholderOfAnotherBox, "a.test");
        assert!(cooldown.admit(other, now).is_some());
        assert!(cooldown.0.len() <= ALL_MAX + SignalKind::ALL.len());
    }
}
