//! The one home of chance.

use box_api::BoxId;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

/// Gives random bytes. Handed in, so that tests decide them.
pub trait Random: Debug + Send + Sync {
    fn fill(&self, bytes: &mut [u8]);
}

impl dyn Random + '_ {
    /// `N` random bytes, such as the ten behind an id.
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }

    pub fn box_id(&self) -> BoxId {
        BoxId::from_random(self.bytes())
    }
}

/// The kernel's generator.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&self, bytes: &mut [u8]) {
        #[expect(
            clippy::expect_used,
            reason = "getrandom(2) fails only for bad pointers and before boot has gathered entropy"
        )]
        getrandom::fill(bytes).expect("the kernel gives random bytes");
    }
}

/// A fixed sequence for tests: the same every run, never the same bytes twice. Not for secrets.
#[derive(Debug, Default)]
pub struct CountingRandom(AtomicU64);

impl Random for CountingRandom {
    fn fill(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            // SplitMix64: spreads a counter over all bits, so that ids differ visibly.
            let mut z = self.0.fetch_add(1, Ordering::SeqCst).wrapping_add(1);
            z = z.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            let word = (z ^ (z >> 31)).to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}
