//! What one box may use of box-egress, so that no box can starve another.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Connections a box can have open.
pub(crate) const CONNECTIONS_MAX: usize = 2048;
/// New connections a second, and how many at once before that counts. Above what a box's own
/// work needs, below what would keep a core from the others.
pub(crate) const CONNECTIONS_PER_SECOND: u32 = 5000;
pub(crate) const CONNECTIONS_BURST: u32 = 5000;
/// Connections to hosts a box can have open beyond the first of each of its own connections: one
/// of HTTP/2 carries many requests, and each can need another.
pub(crate) const FURTHER_UPSTREAMS_MAX: usize = 512;
/// Descriptors a connection can need: two sockets, and a pipe for each direction when it carries
/// much. What the process may open, divided by it, is what all boxes can have together.
pub(crate) const DESCRIPTORS_PER_CONNECTION: usize = 6;
/// Descriptors kept for listeners, resolving and the host.
pub(crate) const DESCRIPTORS_KEPT: usize = 1024;
/// Connections of a box that wait for a person at once.
pub(crate) const HELD_MAX: usize = 64;
/// DNS queries a second, and at once.
pub(crate) const QUERIES_PER_SECOND: u32 = 1000;
pub(crate) const QUERIES_BURST: u32 = 2000;
/// Events a second, and at once; the rest is counted as lost.
pub(crate) const EVENTS_PER_SECOND: u32 = 50;
pub(crate) const EVENTS_BURST: u32 = 200;
/// Time for a request line and headers, or a `ClientHello`, to arrive.
pub(crate) const HEAD_WAIT: Duration = Duration::from_secs(10);
/// Time for a TLS handshake, on either side.
pub(crate) const HANDSHAKE_WAIT: Duration = Duration::from_secs(10);
/// Time for a name to be resolved.
pub(crate) const RESOLVE_WAIT: Duration = Duration::from_secs(8);
/// Time for a connection to one of the addresses to be made.
pub(crate) const DIAL_WAIT: Duration = Duration::from_secs(10);
/// Time for the first byte of a response; models think for minutes.
pub(crate) const RESPONSE_WAIT: Duration = Duration::from_mins(15);
/// Time between two pieces of a body. Streams of events are silent for long.
pub(crate) const BODY_IDLE: Duration = Duration::from_hours(2);
/// Time a tunnel may be silent in both directions.
pub(crate) const TUNNEL_IDLE: Duration = Duration::from_hours(2);
/// What is still read of a request that is refused, and for how long: many a client hears no answer
/// while it sends.
pub(crate) const DRAINED_BYTES_MAX: usize = 1 << 20;
pub(crate) const DRAIN_WAIT: Duration = Duration::from_secs(2);
/// Time a client that is being refused has to take note.
pub(crate) const REFUSAL_WAIT: Duration = Duration::from_secs(15);

/// Lets so many through a second, with a burst (generic cell rate algorithm: one number, the time
/// at which the next one would be on time).
pub(crate) struct Bucket {
    start: Instant,
    next_on_time_ns: AtomicU64,
    interval_ns: u64,
    tolerance_ns: u64,
}

impl Bucket {
    pub(crate) fn new(per_second: u32, burst: u32) -> Self {
        let interval_ns = 1_000_000_000 / u64::from(per_second.max(1));
        Self {
            start: Instant::now(),
            next_on_time_ns: AtomicU64::new(0),
            interval_ns,
            tolerance_ns: interval_ns * u64::from(burst.max(1) - 1),
        }
    }

    /// Whether one more may pass now.
    pub(crate) fn take(&self, now: Instant) -> bool {
        let now_ns = u64::try_from(now.duration_since(self.start).as_nanos()).unwrap_or(u64::MAX);
        self.next_on_time_ns
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
                (next <= now_ns.saturating_add(self.tolerance_ns))
                    .then(|| next.max(now_ns).saturating_add(self.interval_ns))
            })
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_lets_a_burst_through_and_then_the_rate() {
        let bucket = Bucket::new(10, 5);
        let start = bucket.start;
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!((0..20).filter(|_| bucket.take(at(0))).count(), 5);
        assert!(!bucket.take(at(99)));
        assert!(bucket.take(at(100)));
        assert!(!bucket.take(at(100)));
        assert_eq!((0..20).filter(|_| bucket.take(at(10_000))).count(), 5);
    }
}
