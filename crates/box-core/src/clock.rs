//! The one home of the wall clock.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Tells the time. Handed in, so that tests decide it.
pub trait Clock: Debug + Send + Sync {
    /// UTC, milliseconds since 1970.
    fn now_ms(&self) -> i64;
}

/// A time as a person reads it, to the second, UTC.
pub fn shown_ms(at_ms: i64) -> String {
    let since = std::time::Duration::from_millis(u64::try_from(at_ms).unwrap_or_default());
    match std::time::UNIX_EPOCH.checked_add(since) {
        // The year 9999 is the last that is written with four digits.
        Some(at) if at_ms < 253_402_300_800_000 => {
            humantime::format_rfc3339_seconds(at).to_string()
        }
        Some(_) | None => "the end of time".to_owned(),
    }
}

/// The machine's own clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock's one home")]
    fn now_ms(&self) -> i64 {
        let now = std::time::SystemTime::now();
        // Before 1970 or after the year 292 million the clock is wrong anyway.
        now.duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| {
                i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
            })
    }
}

/// A clock that stands still until it is told to move.
#[derive(Debug, Clone, Default)]
pub struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    pub fn at(now_ms: i64) -> Self {
        Self(Arc::new(AtomicI64::new(now_ms)))
    }

    /// Moves it on (or back, with a negative number).
    pub fn advance(&self, by_ms: i64) {
        self.0.fetch_add(by_ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}
