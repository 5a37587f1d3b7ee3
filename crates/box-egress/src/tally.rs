//! What a connection carried, counted on the box's side of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of one connection, both ways. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally(Arc<Bytes>);

#[derive(Debug, Default)]
struct Bytes {
    sent: AtomicU64,
    received: AtomicU64,
}

impl Tally {
    /// The box sent so many.
    pub(crate) fn sent(&self, bytes: u64) {
        self.0.sent.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The box was sent so many.
    pub(crate) fn received(&self, bytes: u64) {
        self.0.received.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Sent and received so far.
    pub(crate) fn so_far(&self) -> (u64, u64) {
        (
            self.0.sent.load(Ordering::Relaxed),
            self.0.received.load(Ordering::Relaxed),
        )
    }
}
