//! Names that look as if they carry data: many different ones under one zone in a short time, long
//! ones, or ones made of what no person would write.
//!
//! One name alone is never a signal: content networks, object stores and previews name their hosts
//! by hashes. Data takes many names.

use super::Seen;
use box_api::egress::HostName;
use box_api::egress::traffic::SignalKind;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::{Duration, Instant};

const WITHIN: Duration = Duration::from_mins(5);
/// Different names under one zone, of any form. A browser on a large site asks for some dozen.
const NAMES_MAX: usize = 150;
/// Different names under one zone of which a part looks made up by a machine.
const ODD_NAMES_MAX: usize = 12;
/// Characters before the zone of different names, together.
const CARRIED_BYTES_MAX: usize = 3000;
/// How many names must have carried them: a handful of long ones is ordinary.
const CARRIERS_MIN: usize = 20;
/// Zones that are watched at once; the one asked for longest ago goes.
const ZONES_MAX: usize = 64;
/// A shorter part holds a word, a number, a region.
const ODD_LABEL_BYTES_MIN: usize = 20;
/// Bits a character. English letters have about 4 over a long text, and 3 in so short a part;
/// base32 and hex of random bytes come near 4 even then.
const ODD_ENTROPY_MIN: f64 = 3.2;
/// Changes between letters and digits; versions and dates have some.
const ODD_CHANGES_MIN: usize = 5;

/// Zones a box asked for lately.
#[derive(Debug, Default)]
pub(super) struct Names(HashMap<String, Zone>);

#[derive(Debug)]
struct Zone {
    since: Instant,
    last: Instant,
    /// Hashes of the names: no more are kept than it takes to tell.
    seen: HashSet<u64>,
    odd: usize,
    carried_bytes: usize,
}

impl Zone {
    fn new(now: Instant) -> Self {
        Self {
            since: now,
            last: now,
            seen: HashSet::new(),
            odd: 0,
            carried_bytes: 0,
        }
    }

    fn carries_data(&self) -> bool {
        let is_long = self.carried_bytes >= CARRIED_BYTES_MAX && self.seen.len() >= CARRIERS_MIN;
        self.seen.len() >= NAMES_MAX || self.odd >= ODD_NAMES_MAX || is_long
    }
}

impl Names {
    /// The box asked for `name`.
    pub(super) fn see(&mut self, name: &HostName, now: Instant) -> Option<Seen> {
        let (before, zone) = split(name.as_str());
        if before.is_empty() {
            return None;
        }
        if !self.0.contains_key(zone) && self.0.len() >= ZONES_MAX {
            let oldest = self.0.iter().min_by_key(|(_, zone)| zone.last);
            let oldest = oldest.map(|(name, _)| name.clone())?;
            self.0.remove(&oldest);
        }
        let watched = self
            .0
            .entry(zone.to_owned())
            .or_insert_with(|| Zone::new(now));
        if now.saturating_duration_since(watched.since) > WITHIN {
            *watched = Zone::new(now);
        }
        watched.last = now;
        if !watched.seen.insert(hash(before)) {
            return None;
        }
        watched.carried_bytes += before.len();
        watched.odd += usize::from(before.split('.').any(is_odd));
        if !watched.carries_data() {
            return None;
        }
        let count = watched.seen.len() as u64;
        // Counted anew, so that what is kept stays small.
        *watched = Zone::new(now);
        Some(Seen {
            kind: SignalKind::DataInNames,
            host: zone.to_owned(),
            count,
        })
    }
}

/// What is before the zone, and the zone: two parts, three where the last two are short as in
/// `co.uk`. A zone that is taken too small only makes the signal later.
fn split(name: &str) -> (&str, &str) {
    let dots: Vec<usize> = name.rmatch_indices('.').map(|(at, _)| at).collect();
    let short = |at: usize, end: usize| end - at <= 4;
    let is_country = match dots.as_slice() {
        [last, second, ..] => short(*last, name.len()) && short(*second, *last),
        _ => false,
    };
    match dots.get(if is_country { 2 } else { 1 }) {
        Some(at) => (&name[..*at], &name[*at + 1..]),
        None => ("", name),
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// Whether a part of a name looks like encoded bytes.
fn is_odd(label: &str) -> bool {
    // Numbers are written in groups by hosts that have many.
    let bytes: Vec<u8> = label.bytes().filter(|byte| *byte != b'-').collect();
    bytes.len() >= ODD_LABEL_BYTES_MIN
        && changes(&bytes) >= ODD_CHANGES_MIN
        && entropy(&bytes) >= ODD_ENTROPY_MIN
}

fn changes(bytes: &[u8]) -> usize {
    let pairs = bytes.windows(2);
    pairs
        .filter(|pair| pair[0].is_ascii_digit() != pair[1].is_ascii_digit())
        .count()
}

/// Shannon's, in bits a character.
#[expect(
    clippy::cast_precision_loss,
    reason = "a name has 253 characters at most"
)]
fn entropy(bytes: &[u8]) -> f64 {
    let mut counts = [0usize; 256];
    for byte in bytes {
        counts[usize::from(*byte)] += 1;
    }
    let total = bytes.len() as f64;
    let parts = counts.iter().filter(|count| **count > 0).map(|count| {
        let share = *count as f64 / total;
        -share * share.log2()
    });
    parts.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> HostName {
        HostName::parse(text).unwrap()
    }

    #[test]
    fn a_zone_is_what_somebody_owns() {
        for (name, before, zone) in [
            ("a.b.evil.test", "a.b", "evil.test"),
            ("evil.test", "", "evil.test"),
            ("test", "", "test"),
            ("x.shop.co.uk", "x", "shop.co.uk"),
            ("shop.co.uk", "", "shop.co.uk"),
        ] {
            assert_eq!(split(name), (before, zone), "{name}");
        }
    }

    #[test]
    fn what_a_machine_made_up_is_told_from_words() {
        for odd in [
            "mfrggzdfmztwq2lknnwg23tpob2xg5dv",
            "6aa30f8b08e16409b46e0173d6de2f56",
            "a3f09c1be47d25860f1e2d3c4b5a6978",
            "nzxw4z3foi2gk43u-mvzca2lt-ebuw4zzo",
        ] {
            assert!(is_odd(odd), "{odd}");
        }
        for plain in [
            "productionresultssa16",
            "docker-images-prod",
            "objects-origin-global",
            "internal-docs-and-examples-2026",
            "statsigapi",
            "d111111abcdef8",
            "ec2-52-23-194-42",
        ] {
            assert!(!is_odd(plain), "{plain}");
        }
    }

    #[test]
    fn zones_and_names_that_are_kept_are_bounded() {
        let (mut names, now) = (Names::default(), Instant::now());
        for zone in 0..10_000 {
            for name in 0..3 {
                names.see(&host(&format!("n{name}.zone{zone}.test")), now);
            }
        }
        assert!(names.0.len() <= ZONES_MAX);
        let kept = names.0.values().map(|zone| zone.seen.len()).max().unwrap();
        assert!(kept <= NAMES_MAX);
    }
}
