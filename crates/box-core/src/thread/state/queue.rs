//! Prompts that wait until a turn is over.

use box_api::thread::QueuedPrompt;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Prompts that wait while a turn runs.
pub(in crate::thread) const QUEUE_PROMPTS_MAX: usize = 16;
/// How much of a prompt that waits a row of the journal repeats.
const SHOWN_BYTES_MAX: usize = 16 << 10;

/// What waits, in the order it will be sent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "Saved")]
pub(in crate::thread) struct Queue {
    waiting: VecDeque<Waiting>,
    /// The number the next one gets.
    next: u64,
    hold: Hold,
}

/// One prompt that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::thread) struct Waiting {
    pub(in crate::thread) queued: u64,
    pub(in crate::thread) text: String,
    /// On its way into the running turn.
    pub(in crate::thread) steering: Option<Steering>,
    pub(in crate::thread) urgency: Urgency,
}

/// A prompt the agent was asked to take into its turn. It waits until the agent says that it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::thread) struct Steering {
    pub(in crate::thread) rpc: i64,
    /// By when the agent must have said so.
    pub(in crate::thread) by_ms: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::thread) enum Urgency {
    /// After the turn.
    InTurn,
    /// As soon as the turn is out of the way, which has been cancelled for it.
    Now,
}

/// Whether something is sent by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Hold {
    #[default]
    Goes,
    /// What was asked on top of a turn that failed, was cancelled or parked is for a person to send.
    Held,
}

/// As a state was saved, by this build or by one whose queue was a list of texts.
#[derive(Deserialize)]
#[serde(untagged)]
enum Saved {
    Texts(VecDeque<String>),
    Queue {
        waiting: VecDeque<Waiting>,
        next: u64,
        hold: Hold,
    },
}

impl From<Saved> for Queue {
    fn from(saved: Saved) -> Self {
        match saved {
            Saved::Queue {
                waiting,
                next,
                hold,
            } => Self {
                waiting,
                next,
                hold,
            },
            Saved::Texts(texts) => {
                let mut queue = Self::default();
                for text in texts {
                    queue.push(text);
                }
                queue
            }
        }
    }
}

impl Queue {
    pub(in crate::thread) fn push(&mut self, text: String) {
        let waiting = self.numbered(text, Urgency::InTurn);
        self.waiting.push_back(waiting);
    }

    pub(in crate::thread) fn push_front(&mut self, text: String) {
        self.push_first(text, Urgency::InTurn);
    }

    /// Before all others.
    pub(in crate::thread) fn push_first(&mut self, text: String, urgency: Urgency) -> u64 {
        let waiting = self.numbered(text, urgency);
        let queued = waiting.queued;
        self.waiting.push_front(waiting);
        queued
    }

    /// One that was taken out, before all others.
    pub(in crate::thread) fn put_first(&mut self, mut waiting: Waiting, urgency: Urgency) {
        waiting.urgency = urgency;
        self.waiting.push_front(waiting);
    }

    fn numbered(&mut self, text: String, urgency: Urgency) -> Waiting {
        self.next += 1;
        Waiting {
            queued: self.next,
            text,
            steering: None,
            urgency,
        }
    }

    pub(in crate::thread) fn get_mut(&mut self, queued: u64) -> Option<&mut Waiting> {
        self.waiting.iter_mut().find(|one| one.queued == queued)
    }

    /// Whether this one waits and is not on its way already.
    pub(in crate::thread) fn can_change(&self, queued: u64) -> bool {
        let found = self.waiting.iter().find(|one| one.queued == queued);
        found.is_some_and(|one| one.steering.is_none())
    }

    pub(in crate::thread) fn remove(&mut self, queued: u64) -> Option<Waiting> {
        let at = self.waiting.iter().position(|one| one.queued == queued)?;
        self.waiting.remove(at)
    }

    /// The one the agent was asked to take with this number.
    pub(in crate::thread) fn steering(&self, rpc: Option<i64>) -> Option<u64> {
        let of = |one: &&Waiting| {
            one.steering
                .is_some_and(|steering| Some(steering.rpc) == rpc)
        };
        self.waiting.iter().find(of).map(|one| one.queued)
    }

    /// Those on their way into a turn, with their deadlines.
    pub(in crate::thread) fn on_their_way(&self) -> impl Iterator<Item = (u64, i64)> {
        let steering = |one: &Waiting| Some((one.queued, one.steering?.by_ms));
        self.waiting.iter().filter_map(steering)
    }

    /// The agent that was to take them is gone: they wait as all others.
    pub(in crate::thread) fn none_on_their_way(&mut self) {
        for one in &mut self.waiting {
            one.steering = None;
            one.urgency = Urgency::InTurn;
        }
    }

    /// What is sent next, if anything goes by itself.
    pub(in crate::thread) fn pop_front(&mut self) -> Option<String> {
        if self.hold == Hold::Held || self.on_their_way().next().is_some() {
            return None;
        }
        self.waiting.pop_front().map(|one| one.text)
    }

    /// Whether the first one is what the turn was cancelled for.
    pub(in crate::thread) fn first_is_urgent(&self) -> bool {
        let first = self.waiting.front();
        first.is_some_and(|one| one.urgency == Urgency::Now && one.steering.is_none())
    }

    /// From here on a person sends what waits.
    pub(in crate::thread) fn hold(&mut self) {
        if !self.waiting.is_empty() {
            self.hold = Hold::Held;
        }
    }

    /// A person has sent something: what waits goes on after it.
    pub(in crate::thread) fn release(&mut self) {
        self.hold = Hold::Goes;
    }

    pub(in crate::thread) fn is_held(&self) -> bool {
        self.hold == Hold::Held && !self.waiting.is_empty()
    }

    pub(in crate::thread) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(in crate::thread) fn has_room(&self) -> bool {
        self.waiting.len() < QUEUE_PROMPTS_MAX
    }

    /// All of it, whole.
    pub(in crate::thread) fn whole(&self) -> Vec<QueuedPrompt> {
        self.shown(usize::MAX)
    }

    /// All of it as a row shows it.
    pub(in crate::thread) fn row(&self) -> Vec<QueuedPrompt> {
        self.shown(SHOWN_BYTES_MAX)
    }

    fn shown(&self, bytes_max: usize) -> Vec<QueuedPrompt> {
        let shown = |one: &Waiting| QueuedPrompt {
            queued: one.queued,
            text: one.text[..one.text.floor_char_boundary(bytes_max)].to_owned(),
            bytes: one.text.len() as u64,
        };
        self.waiting.iter().map(shown).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_of_an_earlier_build_is_taken_up() {
        let queue: Queue = serde_json::from_str(r#"["one","two"]"#).unwrap();
        let texts: Vec<(u64, String)> = queue
            .whole()
            .into_iter()
            .map(|one| (one.queued, one.text))
            .collect();
        assert_eq!(texts, [(1, "one".to_owned()), (2, "two".to_owned())]);
        let saved = serde_json::to_string(&queue).unwrap();
        assert_eq!(serde_json::from_str::<Queue>(&saved).unwrap(), queue);
    }

    #[test]
    fn numbers_are_never_used_twice_and_rows_are_short() {
        let mut queue = Queue::default();
        queue.push("ä".repeat(SHOWN_BYTES_MAX));
        assert_eq!(queue.pop_front().unwrap().len(), 2 * SHOWN_BYTES_MAX);
        queue.push("ä".repeat(SHOWN_BYTES_MAX));
        let row = queue.row();
        assert_eq!(row[0].queued, 2);
        assert_eq!(row[0].text.len(), SHOWN_BYTES_MAX);
        assert_eq!(row[0].bytes, 2 * SHOWN_BYTES_MAX as u64);
    }

    #[test]
    fn what_is_held_or_on_its_way_is_not_sent_by_itself() {
        let mut queue = Queue::default();
        queue.push("one".into());
        queue.hold();
        assert_eq!(queue.pop_front(), None);
        queue.release();
        queue.get_mut(1).unwrap().steering = Some(Steering { rpc: 7, by_ms: 1 });
        assert_eq!(queue.pop_front(), None);
        assert_eq!(queue.steering(Some(7)), Some(1));
        assert!(!queue.can_change(1));
        queue.none_on_their_way();
        assert_eq!(
            queue.pop_front().as_deref(),
            Some("one"),
            "positive control"
        );
    }
}
