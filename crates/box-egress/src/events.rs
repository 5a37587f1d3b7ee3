//! What the host is told. A bounded queue: a slow host never holds up traffic, what does not fit
//! is counted.

use box_api::egress::Event;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::mpsc;

/// Events that wait for a host.
const WAITING_MAX: usize = 8192;

/// The writing end; every box has one.
#[derive(Clone)]
pub(crate) struct Events {
    queue: mpsc::Sender<Event>,
    lost: Arc<AtomicU64>,
}

/// The reading end; the host's connection has it.
pub(crate) struct EventQueue {
    queue: mpsc::Receiver<Event>,
    lost: Arc<AtomicU64>,
    lost_told: u64,
}

pub(crate) fn queue() -> (Events, EventQueue) {
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    let lost = Arc::new(AtomicU64::new(0));
    let events = Events {
        queue: sender,
        lost: Arc::clone(&lost),
    };
    (
        events,
        EventQueue {
            queue: receiver,
            lost,
            lost_told: 0,
        },
    )
}

impl Events {
    pub(crate) fn emit(&self, event: Event) {
        if self.queue.try_send(event).is_err() {
            self.lose();
        }
    }

    pub(crate) fn lose(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }
}

impl EventQueue {
    /// The next event; a loss is told before what came after it.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        let lost = self.lost();
        if lost > self.lost_told {
            let count = lost - self.lost_told;
            self.lost_told = lost;
            return Some(Event::Lost { count });
        }
        self.queue.recv().await
    }

    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// What is there already, without what was lost.
    #[cfg(test)]
    pub(crate) fn try_next(&mut self) -> Option<Event> {
        self.queue.try_recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use box_api::BoxId;

    #[tokio::test]
    async fn full_queue_counts_what_it_throws_away() {
        let (events, mut queue) = queue();
        let box_id = BoxId::from_random([0; 10]);
        for _ in 0..WAITING_MAX + 3 {
            events.emit(Event::BoxGone { box_id });
        }
        assert_eq!(queue.next().await, Some(Event::Lost { count: 3 }));
        assert_eq!(queue.next().await, Some(Event::BoxGone { box_id }));
    }
}
