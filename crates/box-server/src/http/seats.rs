//! Room for connections: those that showed whom they stand for have one of their own, and of the
//! others the oldest goes when a new one comes.
//!
//! So nobody keeps pages out by opening connections and saying nothing: a browser that comes shows
//! its sign-in with its first request, moments after it was let in.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::sync::{Mutex, Notify};

/// Connections that showed nothing yet.
const STRANGERS_MAX: usize = 256;
/// Connections of browsers and programs that are known.
const KNOWN_MAX: usize = 512;

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Seats {
    /// Oldest first. Those that are known or gone meanwhile are taken out when the next one comes.
    strangers: Mutex<VecDeque<Arc<Seat>>>,
    known: AtomicUsize,
}

/// The place of one connection.
#[derive(Debug, Default)]
pub(super) struct Seat {
    is_known: AtomicBool,
    is_over: AtomicBool,
    told_to_go: Notify,
}

impl Seats {
    /// A place for a connection that was just accepted. The stranger that is here longest makes
    /// room for it, if it must.
    pub(super) async fn take(&self) -> Arc<Seat> {
        let seat = Arc::new(Seat::default());
        let mut strangers = self.strangers.lock().await;
        if strangers.len() >= STRANGERS_MAX {
            strangers.retain(|other| other.is_stranger());
        }
        while strangers.len() >= STRANGERS_MAX
            && let Some(oldest) = strangers.pop_front()
        {
            oldest.told_to_go.notify_one();
        }
        strangers.push_back(Arc::clone(&seat));
        seat
    }

    /// The connection showed whom it stands for, now or before.
    pub(super) fn know(&self, seat: &Seat) {
        if seat.is_known.load(Ordering::Relaxed) {
            return;
        }
        let before = self.known.fetch_add(1, Ordering::Relaxed);
        if before >= KNOWN_MAX {
            self.known.fetch_sub(1, Ordering::Relaxed);
        } else if seat.is_known.swap(true, Ordering::Relaxed) {
            // Two requests of one connection at once: it has one place.
            self.known.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The connection is over.
    pub(super) fn leave(&self, seat: &Seat) {
        seat.is_over.store(true, Ordering::Relaxed);
        if seat.is_known.load(Ordering::Relaxed) {
            self.known.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Seat {
    /// Until another one needs the place.
    pub(super) async fn needed(&self) {
        self.told_to_go.notified().await;
    }

    fn is_stranger(&self) -> bool {
        !self.is_known.load(Ordering::Relaxed) && !self.is_over.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    async fn must_go(seat: &Seat) -> bool {
        timeout(Duration::from_millis(1), seat.needed())
            .await
            .is_ok()
    }

    #[tokio::test]
    async fn the_oldest_stranger_makes_room_and_who_is_known_stays() {
        let seats = Seats::default();
        let page = seats.take().await;
        seats.know(&page);
        let silent = seats.take().await;
        for _ in 0..STRANGERS_MAX {
            seats.take().await;
        }
        assert!(must_go(&silent).await, "the oldest one stays");
        assert!(!must_go(&page).await, "a page was put out");
        seats.leave(&page);
        assert_eq!(seats.known.load(Ordering::Relaxed), 0);
    }
}
