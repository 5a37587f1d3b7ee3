//! What a thread has decided and not committed yet.

use super::parked::Parked;
use super::saved::Process;
use super::state::Closed;
use crate::journal::{Place, growing_text};
use crate::store::{Durability, StoreError};
use box_api::Owner;
use box_api::guest::ProcessName;
use box_api::thread::{Decision, Item, JournalRow, ThreadState as Shown, ThreadUpdate};
use std::fmt;

/// No more is taken in while this much waits to be committed.
const BATCH_BYTES_MAX: usize = 4 << 20;
const BATCH_ROWS_MAX: usize = 2000;

/// Everything one commit writes.
#[derive(Debug)]
pub(super) struct Commit {
    pub(super) place: Place,
    pub(super) owner: Owner,
    pub(super) at_ms: i64,
    /// The commit this one follows.
    pub(super) commits: i64,
    pub(super) title: String,
    pub(super) shown: Shown,
    /// JSON of the state after all of this.
    pub(super) saved: String,
    /// JSON of what lists show of it.
    pub(super) summary: String,
    /// Whether the thread waits for a time after all of this.
    pub(super) parked: Option<Parked>,
    pub(super) rows: Vec<RowChange>,
    /// The agent's lines, each with the row it led to.
    pub(super) lines: Vec<(u64, String)>,
    pub(super) processes: Vec<Process>,
    pub(super) outbox: Vec<OutLine>,
    /// Input of a generation that the guest has taken.
    pub(super) taken: Option<(u32, u64)>,
    pub(super) spill: Spill,
    /// Generations whose processes are ended and forgotten.
    pub(super) ended: Vec<u32>,
}

/// One change of the journal.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RowChange {
    Append(JournalRow),
    Grow {
        seq: u64,
        from_byte: u64,
        text: String,
    },
    Open {
        seq: u64,
        at_ms: i64,
        decision: Decision,
        generation: u32,
    },
    Close(Closed),
}

impl RowChange {
    pub(super) fn closed_row(closed: &Closed) -> JournalRow {
        let Closed {
            seq,
            at_ms,
            decision,
            state,
            by,
            note,
            ..
        } = closed.clone();
        JournalRow {
            seq,
            at_ms,
            item: Item::DecisionClosed {
                decision,
                state,
                by,
                note,
            },
        }
    }

    fn as_update(&self) -> ThreadUpdate {
        match self {
            Self::Append(row) => ThreadUpdate::Row(row.clone()),
            Self::Grow {
                seq,
                from_byte,
                text,
            } => ThreadUpdate::Grew {
                seq: *seq,
                from_byte: *from_byte,
                text: text.clone(),
            },
            Self::Open {
                seq,
                at_ms,
                decision,
                ..
            } => ThreadUpdate::Row(JournalRow {
                seq: *seq,
                at_ms: *at_ms,
                item: Item::DecisionOpened(decision.clone()),
            }),
            Self::Close(closed) => ThreadUpdate::Row(Self::closed_row(closed)),
        }
    }
}

/// A line for the agent, at its offset in the whole input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OutLine {
    pub(super) generation: u32,
    pub(super) at: u64,
    pub(super) line: String,
}

/// Pieces of a line that is longer than the guest can keep.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Spill {
    /// The pieces this generation had are of no use any more.
    pub(super) cleared: Option<u32>,
    pub(super) pieces: Vec<Piece>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) generation: u32,
    /// Offset in the process's whole output.
    pub(super) at: u64,
    pub(super) bytes: Vec<u8>,
}

/// What is done once the commit stands.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum After {
    Launch {
        generation: u32,
    },
    /// Take up its streams again.
    Attach {
        generation: u32,
    },
    /// End this process and everything it started.
    End {
        generation: u32,
        name: ProcessName,
    },
}

/// Tells somebody how the commit went.
pub(super) type Reply = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// What waits to be committed.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) rows: Vec<RowChange>,
    pub(super) lines: Vec<(u64, String)>,
    /// Processes that are over; the current one is added when the commit is made.
    pub(super) processes: Vec<Process>,
    pub(super) outbox: Vec<OutLine>,
    pub(super) spill: Spill,
    pub(super) ended: Vec<u32>,
    pub(super) after: Vec<After>,
    pub(super) replies: Vec<Reply>,
    durability: Option<Durability>,
    bytes: usize,
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("rows", &self.rows.len())
            .field("replies", &self.replies.len())
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl Batch {
    /// How it must be committed; `None` when there is nothing to commit.
    pub(super) fn durability(&self) -> Option<Durability> {
        self.durability
    }

    /// Whether it should not wait for more to come.
    pub(super) fn is_urgent(&self) -> bool {
        matches!(self.durability, Some(Durability::Prompt | Durability::Full))
    }

    pub(super) fn has_room(&self) -> bool {
        self.bytes < BATCH_BYTES_MAX && self.rows.len() < BATCH_ROWS_MAX
    }

    /// It is to be committed at least like this.
    pub(super) fn needs(&mut self, durability: Durability) {
        let rank = |durability| match durability {
            Some(Durability::Full) => 3,
            Some(Durability::Prompt) => 2,
            Some(Durability::Grouped) => 1,
            None => 0,
        };
        if rank(Some(durability)) > rank(self.durability) {
            self.durability = Some(durability);
        }
    }

    /// Adds a change of the journal; growth of a row of the same batch becomes part of it.
    pub(super) fn change(&mut self, change: RowChange) {
        self.needs(durability_of(&change));
        match (change, self.rows.last_mut()) {
            (RowChange::Grow { seq, text, .. }, Some(RowChange::Append(row)))
                if row.seq == seq && growing_text(&row.item).is_some() =>
            {
                self.bytes += text.len();
                if let Item::Text { text: whole } | Item::Thought { text: whole } = &mut row.item {
                    whole.push_str(&text);
                }
            }
            (
                RowChange::Grow { seq, text, .. },
                Some(RowChange::Grow {
                    seq: last,
                    text: whole,
                    ..
                }),
            ) if *last == seq => {
                self.bytes += text.len();
                whole.push_str(&text);
            }
            (change, _) => {
                self.bytes += size(&change);
                self.rows.push(change);
            }
        }
    }

    /// Keeps a line of the agent with the row it led to.
    pub(super) fn keep(&mut self, seq: u64, line: String) {
        self.bytes += line.len();
        self.lines.push((seq, line));
    }

    pub(super) fn send(&mut self, line: OutLine) {
        self.needs(Durability::Prompt);
        self.bytes += line.line.len();
        self.outbox.push(line);
    }

    /// Keeps the beginning of a line that is not whole yet.
    pub(super) fn spill(&mut self, piece: Piece) {
        self.needs(Durability::Grouped);
        self.bytes += piece.bytes.len();
        self.spill.pieces.push(piece);
    }

    /// The line is whole now.
    pub(super) fn clear_spill(&mut self, generation: u32) {
        self.spill.pieces.clear();
        self.spill.cleared = Some(generation);
    }

    /// What followers are told once this is committed.
    pub(super) fn updates(&self) -> Vec<ThreadUpdate> {
        self.rows.iter().map(RowChange::as_update).collect()
    }
}

/// What a person asked or is asked, and how it ended, is on disk before anyone is told.
fn durability_of(change: &RowChange) -> Durability {
    match change {
        RowChange::Open { .. }
        | RowChange::Close(_)
        | RowChange::Append(JournalRow {
            item:
                Item::Prompt { .. } | Item::Steered { .. } | Item::Queue { .. } | Item::TurnEnded { .. },
            ..
        }) => Durability::Full,
        RowChange::Append(_) | RowChange::Grow { .. } => Durability::Grouped,
    }
}

fn size(change: &RowChange) -> usize {
    const ROW_BYTES: usize = 200;
    match change {
        RowChange::Grow { text, .. } => text.len(),
        RowChange::Append(row) => growing_text(&row.item).map_or(ROW_BYTES, str::len),
        RowChange::Open { .. } | RowChange::Close(_) => ROW_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(seq: u64, text: &str) -> RowChange {
        let item = Item::Text {
            text: text.to_owned(),
        };
        RowChange::Append(JournalRow {
            seq,
            at_ms: 0,
            item,
        })
    }

    fn grow(seq: u64, from_byte: u64, text: &str) -> RowChange {
        RowChange::Grow {
            seq,
            from_byte,
            text: text.to_owned(),
        }
    }

    #[test]
    fn growth_within_a_batch_is_one_change() {
        let mut batch = Batch::default();
        batch.change(grow(3, 10, "a"));
        batch.change(grow(3, 11, "b"));
        batch.change(text(4, "x"));
        batch.change(grow(4, 1, "y"));
        batch.change(grow(4, 2, "z"));
        assert_eq!(batch.rows, [grow(3, 10, "ab"), text(4, "xyz")]);
        assert_eq!(batch.durability(), Some(Durability::Grouped));
        assert!(!batch.is_urgent());
    }

    #[test]
    fn what_a_person_is_told_is_on_disk_first() {
        let mut batch = Batch::default();
        let item = Item::Prompt {
            text: "hi".to_owned(),
        };
        batch.change(RowChange::Append(JournalRow {
            seq: 1,
            at_ms: 0,
            item,
        }));
        batch.change(text(2, "x"));
        assert_eq!(
            batch.durability(),
            Some(Durability::Full),
            "nothing lowers it again"
        );
        let mut batch = Batch::default();
        batch.send(OutLine {
            generation: 1,
            at: 0,
            line: "{}\n".to_owned(),
        });
        assert_eq!(batch.durability(), Some(Durability::Prompt));
    }

    #[test]
    fn a_full_batch_takes_no_more() {
        let mut batch = Batch::default();
        assert!(batch.has_room());
        batch.change(text(1, &"x".repeat(BATCH_BYTES_MAX)));
        assert!(!batch.has_room());
    }
}
