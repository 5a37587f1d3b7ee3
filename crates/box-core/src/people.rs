//! Who is there to be asked about a box's network, and how they are told.
//!
//! A connection to a host that is not listed waits only while somebody looks: a client that shows
//! a thread of the box to a person, or one that follows every decision.

use box_api::BoxId;
use box_api::thread::Decision;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::{broadcast, watch};

/// Decisions a client may be behind before it reads the rows again.
const TOLD_QUEUED_MAX: usize = 256;

/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct People(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    looking: watch::Sender<Looking>,
    told: broadcast::Sender<Decision>,
    /// Counted up whenever a network log grows.
    log: watch::Sender<u64>,
}

/// How many look at what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Looking {
    everywhere: u32,
    boxes: BTreeMap<BoxId, u32>,
}

impl Looking {
    pub fn at(&self, id: &BoxId) -> bool {
        self.everywhere > 0 || self.boxes.contains_key(id)
    }
}

impl Default for People {
    fn default() -> Self {
        Self(Arc::new(Inner {
            looking: watch::channel(Looking::default()).0,
            told: broadcast::channel(TOLD_QUEUED_MAX).0,
            log: watch::channel(0).0,
        }))
    }
}

impl People {
    /// A person looks at one box as long as the guard lives.
    pub fn look_at(&self, id: BoxId) -> Look {
        self.look(Some(id))
    }

    /// A person looks at every box as long as the guard lives.
    pub fn look_everywhere(&self) -> Look {
        self.look(None)
    }

    fn look(&self, at: Option<BoxId>) -> Look {
        self.0.looking.send_modify(|looking| {
            *match at {
                Some(id) => looking.boxes.entry(id).or_default(),
                None => &mut looking.everywhere,
            } += 1;
        });
        Look {
            people: self.clone(),
            at,
        }
    }

    /// Whether somebody looks, and a receiver that is woken when that changes.
    pub fn looking(&self) -> watch::Receiver<Looking> {
        self.0.looking.subscribe()
    }

    /// Tells whoever listens of a decision that was opened or is over.
    pub(crate) fn tell(&self, decision: &Decision) {
        // Nobody listens: it is in the rows.
        drop(self.0.told.send(decision.clone()));
    }

    /// What [`Self::tell`] says from now on.
    pub fn listen(&self) -> broadcast::Receiver<Decision> {
        self.0.told.subscribe()
    }

    pub(crate) fn log_grew(&self) {
        self.0.log.send_modify(|count| *count += 1);
    }

    /// Woken whenever a network log grows.
    pub fn watch_log(&self) -> watch::Receiver<u64> {
        self.0.log.subscribe()
    }
}

/// Somebody looks.
#[derive(Debug)]
pub struct Look {
    people: People,
    at: Option<BoxId>,
}

impl Drop for Look {
    fn drop(&mut self) {
        self.people.0.looking.send_modify(|looking| match self.at {
            None => looking.everywhere -= 1,
            Some(id) => {
                let left = looking.boxes.remove(&id).unwrap_or_default();
                if left > 1 {
                    looking.boxes.insert(id, left - 1);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn somebody_looks_until_the_last_one_has_left() {
        let (people, id) = (People::default(), BoxId::from_random([1; 10]));
        let other = BoxId::from_random([2; 10]);
        let looks = |id: &BoxId| people.looking().borrow().at(id);
        assert!(!looks(&id));
        let (first, second) = (people.look_at(id), people.look_at(id));
        assert!(looks(&id) && !looks(&other));
        drop(first);
        assert!(looks(&id));
        drop(second);
        assert!(!looks(&id));
        let everywhere = people.look_everywhere();
        assert!(looks(&other));
        drop(everywhere);
        assert!(!looks(&other));
    }
}
