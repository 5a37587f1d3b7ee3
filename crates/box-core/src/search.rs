//! Full text search over what was said and done.
//!
//! A row of a journal is taken in by the same commit that writes it, and again when its text grows.
//! What looks like a secret is left out on the way in ([`redact`]), so that it is neither in the
//! tables of the search nor in an answer. Journals from before there was a search are taken in by
//! [`backlog`] when a host first finds them.

mod ask;
mod backlog;
mod redact;
mod said;

pub use ask::{SearchError, search};
pub use backlog::catch_up;

use crate::journal::{self, Place};
use box_api::thread::JournalRow;
use rusqlite::{OptionalExtension as _, Transaction};

/// Rows that can be found; the oldest are forgotten.
const DOCS_MAX: i64 = 1_000_000;
/// How often they are counted: every so many of them.
const COUNTED_EVERY: i64 = 1024;

/// Takes in a row that was written.
pub(crate) fn take_in(
    tables: &Transaction<'_>,
    place: Place,
    row: &JournalRow,
) -> rusqlite::Result<()> {
    let Some(said) = said::said(&row.item) else {
        return Ok(());
    };
    let text = redact::redacted(said::cut(&said.text));
    let key = (place.thread.as_str(), place.epoch, row.seq);
    let id: Option<i64> = tables
        .prepare_cached(
            "INSERT INTO search_docs (thread, epoch, seq, kind, at_ms, text) \
             VALUES (?, ?, ?, ?, ?, ?) \
             ON CONFLICT (thread, epoch, seq) DO UPDATE SET text = excluded.text RETURNING id",
        )?
        .query_row(
            (key.0, key.1, key.2, said.kind.word(), row.at_ms, text),
            |row| row.get(0),
        )
        .optional()?;
    match id {
        Some(id) if id % COUNTED_EVERY == 0 => forget_oldest(tables, id),
        Some(_) | None => Ok(()),
    }
}

fn forget_oldest(tables: &Transaction<'_>, newest: i64) -> rusqlite::Result<()> {
    tables
        .prepare_cached("DELETE FROM search_docs WHERE id <= ?")?
        .execute([newest - DOCS_MAX])
        .map(drop)
}

/// Takes in a row whose text has grown. What is beyond the part that is searched changes nothing.
pub(crate) fn grown(tables: &Transaction<'_>, place: Place, seq: u64) -> rusqlite::Result<()> {
    let key = (place.thread.as_str(), place.epoch, seq);
    let bytes: Option<i64> = tables
        .prepare_cached(
            "SELECT length(CAST(text AS BLOB)) FROM search_docs \
             WHERE thread = ? AND epoch = ? AND seq = ?",
        )?
        .query_row(key, |row| row.get(0))
        .optional()?;
    if bytes.is_some_and(said::is_full) {
        return Ok(());
    }
    match journal::row(tables, place, seq)? {
        Some(row) => take_in(tables, place, &row),
        None => Ok(()),
    }
}

/// A copy of a journal can be found as the journal can.
pub(crate) fn copy(
    tables: &Transaction<'_>,
    from: Place,
    to: Place,
    before: u64,
) -> rusqlite::Result<()> {
    tables
        .prepare_cached(
            "INSERT INTO search_docs (thread, epoch, seq, kind, at_ms, text) \
             SELECT ?1, ?2, seq, kind, at_ms, text FROM search_docs \
             WHERE thread = ?3 AND epoch = ?4 AND seq < ?5 ORDER BY seq",
        )?
        .execute((
            to.thread.as_str(),
            to.epoch,
            from.thread.as_str(),
            from.epoch,
            before,
        ))
        .map(drop)
}

#[cfg(test)]
mod tests;
