//! Who has which thread in front of them.
//!
//! A page says so itself, again and again: only what it says after a thing happened proves that the
//! thing was seen. A phone that was put away in mid-turn says nothing any more, whatever its socket
//! looks like, and a page that is open elsewhere never counts.

use box_api::page::FRONT_MS;
use box_api::{Owner, ThreadId};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;

/// A page that has not said for so long that it is in front is not.
const LAPSE_MS: i64 = 3 * FRONT_MS.cast_signed();

/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct Front(Arc<watch::Sender<Seats>>);

#[derive(Debug, Default)]
struct Seats {
    next: u64,
    taken: BTreeMap<u64, Look>,
}

#[derive(Debug, Clone, Copy)]
struct Look {
    owner: Owner,
    thread: Option<ThreadId>,
    at_ms: i64,
}

/// Whether something that happened was seen by its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Watched {
    /// A page that shows it was in front afterwards.
    Seen,
    /// A page that shows it was in front shortly before, and may say so again.
    Perhaps,
    Nobody,
}

impl Default for Front {
    fn default() -> Self {
        Self(Arc::new(watch::channel(Seats::default()).0))
    }
}

impl Front {
    /// A place for one page, as long as the guard lives.
    pub fn seat(&self, owner: Owner) -> Seat {
        let mut number = 0;
        self.0.send_modify(|seats| {
            seats.next += 1;
            number = seats.next;
        });
        Seat {
            front: self.clone(),
            number,
            owner,
        }
    }

    /// Whether `owner` saw what happened in `thread` at `at_ms`.
    pub(super) fn watched(
        &self,
        (owner, thread): (Owner, ThreadId),
        at_ms: i64,
        now_ms: i64,
    ) -> Watched {
        let seats = self.0.borrow();
        let looks = seats
            .taken
            .values()
            .filter(|look| look.owner == owner && look.thread == Some(thread));
        let newest = looks.map(|look| look.at_ms).max();
        match newest {
            Some(said_ms) if said_ms > at_ms => Watched::Seen,
            Some(said_ms) if now_ms - said_ms < LAPSE_MS => Watched::Perhaps,
            Some(_) | None => Watched::Nobody,
        }
    }

    /// Woken whenever a page says something.
    pub(super) fn changed(&self) -> watch::Receiver<impl Sized + use<>> {
        self.0.subscribe()
    }
}

/// A page.
#[derive(Debug)]
pub struct Seat {
    front: Front,
    number: u64,
    owner: Owner,
}

impl Seat {
    /// The page is in front and shows this thread, or none; or it is not in front (`None`).
    pub fn look(&self, thread: Option<ThreadId>, at_ms: i64) {
        let look = Look {
            owner: self.owner,
            thread,
            at_ms,
        };
        self.front.0.send_modify(|seats| {
            seats.taken.insert(self.number, look);
        });
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.front.0.send_modify(|seats| {
            seats.taken.remove(&self.number);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: Owner = Owner::Uid(1000);

    fn thread(number: u8) -> ThreadId {
        ThreadId::from_random([number; 10])
    }

    #[test]
    fn only_what_a_page_says_afterwards_proves_that_it_was_seen() {
        let (front, mine) = (Front::default(), (ME, thread(1)));
        assert_eq!(front.watched(mine, 1_000, 1_000), Watched::Nobody);
        let seat = front.seat(ME);
        seat.look(Some(thread(1)), 900);
        assert_eq!(front.watched(mine, 1_000, 1_100), Watched::Perhaps);
        seat.look(Some(thread(1)), 1_200);
        assert_eq!(front.watched(mine, 1_000, 1_300), Watched::Seen);
        drop(seat);
        assert_eq!(front.watched(mine, 1_000, 1_300), Watched::Nobody);
    }

    #[test]
    fn a_page_that_is_silent_or_elsewhere_or_anothers_swallows_nothing() {
        let (front, mine) = (Front::default(), (ME, thread(1)));
        let (elsewhere, other) = (front.seat(ME), front.seat(Owner::Uid(7)));
        elsewhere.look(Some(thread(2)), 2_000);
        other.look(Some(thread(1)), 2_000);
        assert_eq!(front.watched(mine, 1_000, 2_000), Watched::Nobody);
        elsewhere.look(None, 2_000);
        assert_eq!(front.watched(mine, 1_000, 2_000), Watched::Nobody);
        let silent = front.seat(ME);
        silent.look(Some(thread(1)), 1_000);
        let later = 1_000 + LAPSE_MS;
        assert_eq!(front.watched(mine, 1_001, later - 1), Watched::Perhaps);
        assert_eq!(front.watched(mine, 1_001, later), Watched::Nobody);
    }
}
