//! The end of a journal, and single rows of it, for whoever does not read it from its beginning.

use super::{Place, read, size};
use box_api::thread::{JournalRow, ThreadUpdate};
use rusqlite::{Connection, OptionalExtension as _};

/// Some rows in a row.
#[derive(Debug, Clone, PartialEq)]
pub struct Tail {
    /// Oldest first.
    pub rows: Vec<JournalRow>,
    /// Whether there are rows before the first one.
    pub older: bool,
}

/// How much of a journal is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measure {
    pub rows_max: u32,
    /// The rows end with the one that takes them past this.
    pub bytes_max: usize,
    /// A row counts for no more than this.
    pub row_bytes_max: usize,
}

/// The newest rows before `before`, or of all.
///
/// # Errors
/// What the database said, or a row this build cannot read.
pub fn tail(
    tables: &Connection,
    place: Place,
    before: Option<u64>,
    measure: Measure,
) -> rusqlite::Result<Tail> {
    let mut statement = tables.prepare_cached(
        "SELECT seq, at_ms, item, text FROM journal \
         WHERE thread = ? AND epoch = ? AND seq < ? ORDER BY seq DESC LIMIT ?",
    )?;
    let before = before
        .and_then(|before| i64::try_from(before).ok())
        .unwrap_or(i64::MAX);
    let mut found =
        statement.query((place.thread.as_str(), place.epoch, before, measure.rows_max))?;
    let (mut rows, mut bytes) = (Vec::new(), 0);
    while let Some(row) = found.next()? {
        let row = read(row)?;
        let update = ThreadUpdate::Row(row.clone());
        bytes += size(&update).min(measure.row_bytes_max);
        rows.push(row);
        if bytes > measure.bytes_max {
            break;
        }
    }
    rows.reverse();
    // Rows are numbered from 1 without a gap.
    let older = rows.first().is_some_and(|first| first.seq > 1);
    Ok(Tail { rows, older })
}

/// One row, whole.
///
/// # Errors
/// As [`tail`].
pub fn row(tables: &Connection, place: Place, seq: u64) -> rusqlite::Result<Option<JournalRow>> {
    tables
        .prepare_cached(
            "SELECT seq, at_ms, item, text FROM journal WHERE thread = ? AND epoch = ? AND seq = ?",
        )?
        .query_row((place.thread.as_str(), place.epoch, seq), read)
        .optional()
}
