//! A thread's journal as a page gets it: a tail first, then what comes, older pages on demand.

use crate::thread::{Cursor, Decision, JournalRow, ThreadShown};
use serde::{Deserialize, Serialize};

/// Size a frame or a page of updates is kept under, save for one row that is larger.
pub const FRAME_BYTES_MAX: usize = 64 << 10;
/// Size of the rows a thread is first shown with.
pub const TAIL_BYTES_MAX: usize = 64 << 10;
/// A row's content beyond this is left out of frames and pages; see [`PageRow`].
pub const ROW_BYTES_MAX: usize = 16 << 10;
/// Longest a long poll waits, seconds.
pub const WAIT_S_MAX: u64 = 25;

/// A row of the journal, shortened where it is large.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct PageRow {
    #[serde(flatten)]
    pub row: JournalRow,
    /// For rows whose text grows: `text` begins at this byte of the whole text. What is before it
    /// is had with the row itself (`…/rows/{seq}`).
    #[serde(default)]
    pub text_from: u64,
    /// Long texts in it were cut in the middle; the row itself has them whole.
    #[serde(default)]
    pub cut: bool,
}

/// What happened to a journal. Rows come in order of `seq`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum LogUpdate {
    /// A row that is new.
    Row(Box<PageRow>),
    /// The text of row `seq` got longer: `text` belongs at byte `from_byte` (UTF-8) of the whole.
    Grew {
        seq: u64,
        from_byte: u64,
        text: String,
    },
}

/// What there is to know about a thread beside its journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct ThreadHead {
    pub shown: ThreadShown,
    /// What it asks and nobody has answered, oldest first.
    pub open: Vec<Decision>,
}

/// Where the updates of a page begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// At the cursor that was asked from: they go on from what the page has.
    Cursor,
    /// Anew: the page forgets what it has of the thread. No cursor was given, it was of another
    /// epoch, or too far behind.
    Tail,
}

/// The long-poll twin of the WebSocket's thread frames.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct LogPage {
    pub start: Start,
    /// Where the first update belongs: the cursor asked from, or where the tail begins.
    pub from: Cursor,
    /// Ask from here next.
    pub to: Cursor,
    pub updates: Vec<LogUpdate>,
    /// Whether there are rows before the first one (of a tail).
    pub older: bool,
    pub head: ThreadHead,
}

/// Older rows, oldest first: the newest of those before the one asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct RowsPage {
    pub epoch: u32,
    pub rows: Vec<PageRow>,
    /// Whether there are rows before the first one.
    pub older: bool,
}
