//! Where we stand in a journal, so that a connection lost and taken up again shows nothing twice
//! and leaves nothing out.

use super::{Cursor, Item, JournalRow, ThreadUpdate};

/// The last row seen and how much of its text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Position {
    epoch: u32,
    seq: u64,
    bytes: u64,
}

/// What to do with an update.
#[derive(Debug, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one at a time, and it is taken apart at once"
)]
pub enum Admitted {
    /// It is new: show this, which may be only the new part of it.
    New(ThreadUpdate),
    /// It was seen before.
    Seen,
    /// Something before it is missing: ask again from the cursor.
    Gap,
}

impl Position {
    /// The cursor to ask from; none before the first row.
    pub fn cursor(&self) -> Option<Cursor> {
        let Self { epoch, seq, bytes } = *self;
        (seq > 0).then_some(Cursor { epoch, seq, bytes })
    }

    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The journal was rebuilt: what we knew of it means nothing any more.
    pub fn begin_epoch(&mut self, epoch: u32) {
        *self = Self {
            epoch,
            seq: 0,
            bytes: 0,
        };
    }

    /// Takes an update in.
    pub fn admit(&mut self, update: ThreadUpdate) -> Admitted {
        match update {
            ThreadUpdate::Row(row) => self.admit_row(row),
            ThreadUpdate::Grew {
                seq,
                from_byte,
                text,
            } => self.admit_growth(seq, from_byte, &text),
            ThreadUpdate::CaughtUp { cursor } => {
                self.epoch = cursor.epoch;
                Admitted::New(ThreadUpdate::CaughtUp { cursor })
            }
        }
    }

    fn admit_row(&mut self, row: JournalRow) -> Admitted {
        if row.seq < self.seq {
            return Admitted::Seen;
        }
        let text = growing_text(&row.item);
        if row.seq == self.seq {
            // Sent again in whole, perhaps longer than we saw it.
            return text.map_or(Admitted::Seen, |text| self.admit_growth(row.seq, 0, text));
        }
        self.seq = row.seq;
        self.bytes = text.map_or(0, length);
        Admitted::New(ThreadUpdate::Row(row))
    }

    fn admit_growth(&mut self, seq: u64, from_byte: u64, text: &str) -> Admitted {
        if seq < self.seq {
            return Admitted::Seen;
        }
        let end = from_byte.saturating_add(length(text));
        if seq > self.seq || from_byte > self.bytes {
            return Admitted::Gap;
        }
        if end <= self.bytes {
            return Admitted::Seen;
        }
        let known = usize::try_from(self.bytes - from_byte).unwrap_or(usize::MAX);
        // Both sides count whole characters, so that the rest begins with one.
        let Some(rest) = text.get(known..) else {
            return Admitted::Gap;
        };
        let from_byte = std::mem::replace(&mut self.bytes, end);
        Admitted::New(ThreadUpdate::Grew {
            seq,
            from_byte,
            text: rest.to_owned(),
        })
    }
}

fn length(text: &str) -> u64 {
    text.len() as u64
}

fn growing_text(item: &Item) -> Option<&str> {
    match item {
        Item::Text { text } | Item::Thought { text } => Some(text),
        Item::Prompt { .. }
        | Item::ToolCall { .. }
        | Item::ToolUpdate { .. }
        | Item::Plan { .. }
        | Item::DecisionOpened(_)
        | Item::DecisionClosed { .. }
        | Item::TurnEnded { .. }
        | Item::Command { .. }
        | Item::Steered { .. }
        | Item::Queue { .. }
        | Item::OptionSet { .. }
        | Item::Background { .. }
        | Item::Woke { .. }
        | Item::Forked { .. }
        | Item::WentBack { .. }
        | Item::Notice { .. }
        | Item::Mode { .. }
        | Item::Usage { .. }
        | Item::Detail { .. }
        | Item::Unknown { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_row(seq: u64, text: &str) -> ThreadUpdate {
        ThreadUpdate::Row(JournalRow {
            seq,
            at_ms: 0,
            item: Item::Text {
                text: text.to_owned(),
            },
        })
    }

    fn grew(seq: u64, from_byte: u64, text: &str) -> ThreadUpdate {
        ThreadUpdate::Grew {
            seq,
            from_byte,
            text: text.to_owned(),
        }
    }

    #[test]
    fn what_was_seen_is_not_admitted_twice() {
        let mut position = Position::default();
        assert_eq!(position.cursor(), None);
        assert!(matches!(
            position.admit(text_row(3, "ab")),
            Admitted::New(_)
        ));
        assert_eq!(
            position.admit(grew(3, 2, "cd")),
            Admitted::New(grew(3, 2, "cd"))
        );
        assert_eq!(position.admit(grew(3, 2, "cd")), Admitted::Seen);
        assert_eq!(position.admit(text_row(2, "old")), Admitted::Seen);
        assert_eq!(position.admit(text_row(3, "abcd")), Admitted::Seen);
        assert_eq!(
            position.cursor(),
            Some(Cursor {
                epoch: 0,
                seq: 3,
                bytes: 4
            })
        );
    }

    #[test]
    fn of_a_row_sent_again_only_the_new_part_is_shown() {
        let mut position = Position::default();
        position.admit(text_row(1, "grüß"));
        assert_eq!(
            position.admit(text_row(1, "grüße dich")),
            Admitted::New(grew(1, 6, "e dich"))
        );
        assert_eq!(
            position.admit(grew(1, 4, "ße dich!")),
            Admitted::New(grew(1, 12, "!"))
        );
    }

    #[test]
    fn a_hole_is_noticed() {
        let mut position = Position::default();
        position.admit(text_row(1, "ab"));
        assert_eq!(position.admit(grew(1, 3, "d")), Admitted::Gap);
        assert_eq!(position.admit(grew(2, 0, "d")), Admitted::Gap);
        assert_eq!(
            position.cursor(),
            Some(Cursor {
                epoch: 0,
                seq: 1,
                bytes: 2
            })
        );
    }
}
