//! Restore points: what a box was before each turn, files and conversations together.

use crate::{Label, ThreadId};
use serde::{Deserialize, Serialize};

/// Whether a box gets a restore point before each turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TurnUndo {
    /// Where a copy of the box costs next to nothing.
    #[default]
    Auto,
    Off,
}

impl TurnUndo {
    /// As settings name it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Off => "off",
        }
    }

    /// # Errors
    /// What it should be.
    pub fn parse(text: &str) -> Result<Self, String> {
        [Self::Auto, Self::Off]
            .into_iter()
            .find(|one| one.word() == text)
            .ok_or_else(|| "`auto` or `off`".to_owned())
    }
}

/// A snapshot the host took by itself just before a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct RestorePoint {
    /// What `box undo --to`, `box restore` and `box new --from <box>/<label>` take.
    pub label: Label,
    pub thread: ThreadId,
    /// The row of the turn's prompt in that thread's journal.
    pub seq: u64,
    /// UTC, milliseconds since 1970.
    pub at_ms: i64,
    /// The first words of the prompt.
    pub words: String,
    /// Size of its files, shared content counted in full.
    pub bytes: u64,
    /// What taking it cost, microseconds.
    pub took_us: u64,
    /// Its turn was undone already.
    #[serde(default)]
    pub undone: bool,
}

/// The restore points of one box.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct RestorePoints {
    /// Oldest first.
    pub points: Vec<RestorePoint>,
    /// Why the next turn will get none, for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub none_because: Option<String>,
    /// The snapshot that takes the last undo or restore back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way_forward: Option<Label>,
}

/// A row of a journal that says: from here on the conversation is what it was before row `before`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WayBack {
    /// That row.
    pub at: u64,
    pub before: u64,
}

/// Whether row `seq` is part of the conversation as it stands before row `end`. `ways` are all of
/// the journal's, oldest first. Going back to a moment after an earlier undo undoes that undo.
pub fn is_live(seq: u64, end: u64, ways: &[WayBack]) -> bool {
    let mut end = end;
    loop {
        if seq >= end {
            return false;
        }
        let last = ways.iter().rev().find(|way| way.at < end);
        match last {
            // What is before is always earlier, so this comes to an end.
            Some(way) if seq <= way.at && way.before <= way.at => end = way.before,
            Some(_) | None => return true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(end: u64, ways: &[WayBack]) -> Vec<u64> {
        (1..end).filter(|seq| is_live(*seq, end, ways)).collect()
    }

    #[test]
    fn a_way_back_leaves_out_what_came_after_it_began() {
        assert_eq!(live(4, &[]), [1, 2, 3]);
        let undo = WayBack { at: 5, before: 3 };
        assert_eq!(live(8, &[undo]), [1, 2, 6, 7]);
        // As the conversation was before: nothing of it is undone yet.
        assert_eq!(live(5, &[undo]), [1, 2, 3, 4]);
    }

    #[test]
    fn an_undo_that_is_undone_counts_for_nothing() {
        let undo = WayBack { at: 5, before: 3 };
        let redo = WayBack { at: 7, before: 5 };
        assert_eq!(live(9, &[undo, redo]), [1, 2, 3, 4, 8]);
        let twice = WayBack { at: 8, before: 2 };
        assert_eq!(live(10, &[undo, redo, twice]), [1, 9]);
    }

    #[test]
    fn ways_that_lead_nowhere_come_to_an_end() {
        let odd = WayBack { at: 3, before: 9 };
        assert_eq!(live(6, &[odd]), [1, 2, 3, 4, 5]);
        let whole = WayBack { at: 3, before: 3 };
        assert_eq!(live(6, &[whole]), [1, 2, 4, 5]);
    }

    #[test]
    fn a_setting_is_read_by_its_word() {
        for one in [TurnUndo::Auto, TurnUndo::Off] {
            assert_eq!(TurnUndo::parse(one.word()), Ok(one));
        }
        assert!(TurnUndo::parse("on").is_err());
    }
}
