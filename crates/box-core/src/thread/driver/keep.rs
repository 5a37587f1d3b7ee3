//! A restore point before a turn: its prompt is on disk, and waits until the box is kept.

use super::Driver;
use crate::restore_points::TurnBegun;
use crate::thread::saved::Process;
use box_api::thread::{Item, ThreadUpdate};

/// Longest that is kept of a prompt to tell it by.
const WORDS_CHARS_MAX: usize = 80;

/// Whether a prompt is held back.
#[derive(Debug, Default)]
pub(super) enum Keep {
    #[default]
    Nothing,
    Wanted(TurnBegun, Option<Process>),
    /// With what was committed meanwhile.
    UnderWay(Option<Process>),
}

impl Keep {
    /// The turn the box is to be kept before, once.
    pub(super) fn begin(&mut self) -> Option<TurnBegun> {
        match std::mem::take(self) {
            Self::Wanted(begun, process) => {
                *self = Self::UnderWay(process);
                Some(begun)
            }
            other @ (Self::Nothing | Self::UnderWay(_)) => {
                *self = other;
                None
            }
        }
    }
}

impl Driver<'_> {
    /// The turn that begins with these rows, if one does and it has not ended already.
    pub(super) fn turn_begun(&self, updates: &[ThreadUpdate]) -> Option<TurnBegun> {
        self.state.in_turn().then_some(())?;
        updates.iter().rev().find_map(|update| {
            let ThreadUpdate::Row(row) = update else {
                return None;
            };
            let Item::Prompt { text, .. } = &row.item else {
                return None;
            };
            Some(TurnBegun {
                place: self.place,
                seq: row.seq,
                words: words(text),
            })
        })
    }

    pub(super) fn keep_before(&mut self, begun: Option<TurnBegun>) {
        if let Some(begun) = begun {
            self.keep = match std::mem::take(&mut self.keep) {
                // The one before has been cancelled; its copy serves.
                under_way @ Keep::UnderWay(_) => under_way,
                Keep::Nothing | Keep::Wanted(..) => Keep::Wanted(begun, None),
            };
        }
    }

    /// What is committed goes to the agent, unless it waits for the box to be kept.
    pub(super) fn pass_on(&mut self, process: Option<Process>) {
        match &mut self.keep {
            Keep::Wanted(_, held) | Keep::UnderWay(held) => {
                *held = process.or(held.take());
            }
            Keep::Nothing => {
                if let (Some(link), Some(process)) = (&self.link, &process)
                    && link.generation == process.generation
                {
                    link.committed(process);
                }
            }
        }
    }

    pub(super) fn box_is_kept(&mut self) {
        match std::mem::take(&mut self.keep) {
            Keep::UnderWay(held) => self.pass_on(held),
            other @ (Keep::Nothing | Keep::Wanted(..)) => self.keep = other,
        }
    }
}

fn words(text: &str) -> String {
    let head: String = text.chars().take(WORDS_CHARS_MAX).collect();
    head.split_whitespace().collect::<Vec<_>>().join(" ")
}
