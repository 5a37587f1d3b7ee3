//! The time of day, for events and certificates. Everything else here uses monotonic time.

use std::time::{SystemTime, UNIX_EPOCH};

/// Now.
#[expect(
    clippy::disallowed_methods,
    reason = "the one home of the time of day in box-egress"
)]
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}

/// UTC, milliseconds since 1970; 0 on a machine whose clock stands before that.
pub(crate) fn now_ms() -> i64 {
    let since = now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
