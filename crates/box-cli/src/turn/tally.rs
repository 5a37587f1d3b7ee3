//! What is known of a turn at its end: how it ended, what the agent said last, what was used up.

use crate::json::Usage;
use box_api::thread::{Item, ThreadUpdate, TurnOutcome};

/// More than any answer; the rest of a longer one is left out.
const ANSWER_BYTES_MAX: usize = 8 << 20;
/// The turn waits for a person, and nobody is here to ask.
pub(crate) const WAITS_FOR_A_PERSON: u8 = 6;

/// Grows with each update that is shown.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    answer: String,
    /// The row whose text the answer ends with.
    growing: Option<u64>,
    stands: Stands,
    outcome: Option<TurnOutcome>,
    note: Option<String>,
    usage: Option<Usage>,
}

/// Whether what the agent says next belongs to what it said before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Stands {
    #[default]
    Still,
    /// It thought in between.
    Apart,
    /// It did something in between: only what it says afterwards is an answer.
    Past,
}

impl Tally {
    pub(crate) fn take(&mut self, update: &ThreadUpdate) {
        match update {
            ThreadUpdate::Row(row) => {
                if let Item::Text { text } = &row.item {
                    self.say(row.seq, text);
                } else {
                    self.growing = None;
                    self.see(&row.item);
                }
            }
            ThreadUpdate::Grew { seq, text, .. } if self.growing == Some(*seq) => self.add(text),
            ThreadUpdate::Grew { .. } | ThreadUpdate::CaughtUp { .. } => {}
        }
    }

    fn say(&mut self, seq: u64, text: &str) {
        match std::mem::take(&mut self.stands) {
            Stands::Past => self.answer.clear(),
            Stands::Apart if !self.answer.is_empty() => self.answer.push_str("\n\n"),
            Stands::Apart | Stands::Still => {}
        }
        self.growing = Some(seq);
        self.add(text);
    }

    fn add(&mut self, text: &str) {
        let room = ANSWER_BYTES_MAX.saturating_sub(self.answer.len());
        self.answer
            .push_str(&text[..text.floor_char_boundary(room)]);
    }

    fn see(&mut self, item: &Item) {
        if let Item::Prompt { .. } = item {
            self.stands = Stands::Past;
            self.answer.clear();
            (self.outcome, self.note) = (None, None);
        } else if let Item::ToolCall { .. }
        | Item::ToolUpdate { .. }
        | Item::Plan { .. }
        | Item::DecisionOpened(_) = item
        {
            self.stands = Stands::Past;
        } else if let (Item::Thought { .. }, Stands::Still) = (item, self.stands) {
            self.stands = Stands::Apart;
        } else if let Item::Usage { used, size, cost } = item {
            self.usage = Some(Usage {
                used: *used,
                size: *size,
                cost: cost.clone(),
            });
        } else if let Item::TurnEnded { outcome, note } = item {
            self.outcome = Some(*outcome);
            self.note.clone_from(note);
        }
    }

    /// What the agent said last, after all it did.
    pub(crate) fn answer(&self) -> &str {
        self.answer.trim()
    }

    pub(crate) fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    pub(crate) fn usage(&self) -> Option<&Usage> {
        self.usage.as_ref()
    }

    /// The outcome of who ends with this code.
    pub(crate) fn word(&self, exit: u8) -> &'static str {
        match (self.outcome, exit) {
            (_, WAITS_FOR_A_PERSON) => "waiting",
            (Some(outcome), exit) if outcome.exit_code() == exit => outcome_word(outcome),
            (_, 0) => "idle",
            (_, _) => "left",
        }
    }
}

/// As on the wire.
fn outcome_word(outcome: TurnOutcome) -> &'static str {
    match outcome {
        TurnOutcome::Done => "done",
        TurnOutcome::Failed => "failed",
        TurnOutcome::Refused => "refused",
        TurnOutcome::Cancelled => "cancelled",
        TurnOutcome::Parked => "parked",
        TurnOutcome::StoppedShort => "stopped_short",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use box_api::thread::JournalRow;
    use serde_json::json;

    fn tally(items: &[serde_json::Value]) -> Tally {
        let mut tally = Tally::default();
        for (at, item) in items.iter().enumerate() {
            let item = serde_json::from_value(item.clone()).unwrap();
            tally.take(&ThreadUpdate::Row(JournalRow {
                seq: at as u64 + 1,
                at_ms: 0,
                item,
            }));
        }
        tally
    }

    #[test]
    fn the_answer_is_what_was_said_after_all_that_was_done() {
        let text = |text: &str| json!({"kind": "text", "text": text});
        let tool = json!({"kind": "tool_update", "call": "a", "status": "completed"});
        let thought = json!({"kind": "thought", "text": "hm"});
        let usage = json!({"kind": "usage", "used": 5, "size": 100, "cost": "$0.02"});
        let end = json!({"kind": "turn_ended", "outcome": "done", "note": null});
        let whole = tally(&[
            text("I will look."),
            tool.clone(),
            text("It is "),
            usage.clone(),
            text("green."),
            thought,
            text("Ship it.\n"),
            end.clone(),
        ]);
        assert_eq!(whole.answer(), "It is green.\n\nShip it.");
        assert_eq!(whole.word(0), "done");
        assert_eq!(whole.usage().unwrap().cost.as_deref(), Some("$0.02"));
        // Who says nothing afterwards has said it before.
        assert_eq!(tally(&[text("Done."), tool, end]).answer(), "Done.");
    }

    #[test]
    fn only_the_text_that_is_open_grows() {
        let mut tally = tally(&[json!({"kind": "text", "text": "a"})]);
        let grew = |seq, text: &str| ThreadUpdate::Grew {
            seq,
            from_byte: 1,
            text: text.to_owned(),
        };
        tally.take(&grew(1, "b"));
        tally.take(&grew(7, "c"));
        assert_eq!(tally.answer(), "ab");
        assert_eq!(tally.word(6), "waiting");
        assert_eq!(tally.word(130), "left");
    }
}
