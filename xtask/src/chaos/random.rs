//! Chance that can be repeated: `SplitMix64` (Steele, Lea, Flood 2014).

use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Debug)]
pub(super) struct Random(u64);

/// A seed nobody chose.
pub(super) fn from_clock() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(1, |since| since.as_secs() ^ u64::from(since.subsec_nanos()))
}

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is not 0.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// One of them; `None` of none.
    pub(super) fn pick<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        let count = u64::try_from(all.len()).ok().filter(|count| *count > 0)?;
        all.get(usize::try_from(self.below(count)).unwrap_or_default())
    }
}
