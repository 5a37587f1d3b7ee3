//! SQL of restore points: where threads stood when a snapshot was taken, and how they went back.

use crate::journal::Place;
use box_api::restore_point::WayBack;
use box_api::{BoxId, Label, ThreadId};
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, types::Type};

/// Where a thread stood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stood {
    pub(crate) thread: ThreadId,
    pub(crate) epoch: u32,
    /// The row of its journal that came next.
    pub(crate) before: u64,
    pub(crate) known_as: Option<String>,
}

/// A turn that begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnBegun {
    pub place: Place,
    /// The row of its prompt.
    pub seq: u64,
    /// The first words of the prompt.
    pub words: String,
}

/// A restore point as the tables have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PointRow {
    pub(crate) box_id: BoxId,
    pub(crate) label: Label,
    pub(crate) begun: TurnBegun,
    pub(crate) at_ms: i64,
    pub(crate) took_us: u64,
}

/// Writes down where every thread of a box stands, under the label of a snapshot about to be taken.
pub(crate) fn note_moment(
    tables: &Transaction<'_>,
    box_id: &BoxId,
    label: &Label,
    at_ms: i64,
) -> rusqlite::Result<()> {
    forget(tables, box_id, label)?;
    let key = (box_id.as_str(), label.as_str());
    tables
        .prepare_cached("INSERT INTO snapshot_moments (box_id, label, at_ms) VALUES (?, ?, ?)")?
        .execute((key.0, key.1, at_ms))?;
    // As `thread::state::ThreadState` is saved; a test holds the two together.
    tables
        .prepare_cached(
            "INSERT INTO snapshot_threads (box_id, label, thread, epoch, before, known_as) \
             SELECT box_id, ?2, id, epoch, json_extract(saved, '$.next_seq'), \
             json_extract(saved, '$.known_as') FROM threads WHERE box_id = ?1",
        )?
        .execute(key)?;
    Ok(())
}

/// Forgets a snapshot that is not there.
pub(crate) fn forget(
    tables: &Transaction<'_>,
    box_id: &BoxId,
    label: &Label,
) -> rusqlite::Result<()> {
    let key = (box_id.as_str(), label.as_str());
    tables
        .prepare_cached("DELETE FROM snapshot_moments WHERE box_id = ? AND label = ?")?
        .execute(key)
        .map(drop)
}

/// Where threads stood when this snapshot was taken; `None` when nobody wrote it down.
pub(crate) fn stood(
    tables: &Connection,
    box_id: &BoxId,
    label: &Label,
) -> rusqlite::Result<Option<Vec<Stood>>> {
    let key = (box_id.as_str(), label.as_str());
    let noted: Option<i64> = tables
        .prepare_cached("SELECT at_ms FROM snapshot_moments WHERE box_id = ? AND label = ?")?
        .query_row(key, |row| row.get(0))
        .optional()?;
    if noted.is_none() {
        return Ok(None);
    }
    let mut statement = tables.prepare_cached(
        "SELECT thread, epoch, before, known_as FROM snapshot_threads \
         WHERE box_id = ? AND label = ? ORDER BY thread",
    )?;
    let rows = statement.query_map(key, |row| {
        Ok(Stood {
            thread: thread(row, 0)?,
            epoch: row.get(1)?,
            before: row.get(2)?,
            known_as: row.get(3)?,
        })
    })?;
    rows.collect::<rusqlite::Result<_>>().map(Some)
}

/// Where the threads of a box stand now.
pub(crate) fn stand(tables: &Connection, box_id: &BoxId) -> rusqlite::Result<Vec<Stood>> {
    let mut statement = tables.prepare_cached(
        "SELECT id, epoch, json_extract(saved, '$.next_seq'), json_extract(saved, '$.known_as') \
         FROM threads WHERE box_id = ? ORDER BY id",
    )?;
    let rows = statement.query_map([box_id.as_str()], |row| {
        Ok(Stood {
            thread: thread(row, 0)?,
            epoch: row.get(1)?,
            before: row.get(2)?,
            known_as: row.get(3)?,
        })
    })?;
    rows.collect()
}

/// Writes down a restore point that is about to be taken, under a label no other one ever had.
pub(crate) fn reserve(
    tables: &Transaction<'_>,
    box_id: &BoxId,
    begun: &TurnBegun,
    at_ms: i64,
) -> rusqlite::Result<Label> {
    let number: u32 = tables
        .prepare_cached(
            "INSERT INTO restore_numbers (box_id, last) VALUES (?, 1) \
             ON CONFLICT (box_id) DO UPDATE SET last = last + 1 RETURNING last",
        )?
        .query_row([box_id.as_str()], |row| row.get(0))?;
    let label = label(number)?;
    note_moment(tables, box_id, &label, at_ms)?;
    let (key, place) = ((box_id.as_str(), label.as_str()), begun.place);
    // Of its own thread it is known to the row: others may have been written since.
    tables
        .prepare_cached(
            "UPDATE snapshot_threads SET before = ? WHERE box_id = ? AND label = ? AND thread = ?",
        )?
        .execute((begun.seq, key.0, key.1, place.thread.as_str()))?;
    tables
        .prepare_cached(
            "INSERT INTO restore_points (box_id, label, number, thread, epoch, seq, words, at_ms) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute((
            key.0,
            key.1,
            number,
            place.thread.as_str(),
            place.epoch,
            begun.seq,
            &begun.words,
            at_ms,
        ))?;
    Ok(label)
}

fn label(number: u32) -> rusqlite::Result<Label> {
    Label::parse(&format!("turn-{number}")).map_err(|error| unreadable(0, error))
}

/// The restore point is there.
pub(crate) fn taken(
    tables: &Transaction<'_>,
    box_id: &BoxId,
    label: &Label,
    took_us: u64,
) -> rusqlite::Result<()> {
    tables
        .prepare_cached("UPDATE restore_points SET took_us = ? WHERE box_id = ? AND label = ?")?
        .execute((took_us, box_id.as_str(), label.as_str()))
        .map(drop)
}

const POINT: &str = "SELECT box_id, label, thread, epoch, seq, words, at_ms, took_us FROM restore_points \
     WHERE took_us IS NOT NULL";

/// The restore points of a box, oldest first.
pub(crate) fn of_box(tables: &Connection, box_id: &BoxId) -> rusqlite::Result<Vec<PointRow>> {
    tables
        .prepare_cached(&format!("{POINT} AND box_id = ? ORDER BY number"))?
        .query_map([box_id.as_str()], point)?
        .collect()
}

/// All restore points there are, oldest first.
pub(crate) fn all(tables: &Connection) -> rusqlite::Result<Vec<PointRow>> {
    tables
        .prepare_cached(&format!("{POINT} ORDER BY at_ms, number"))?
        .query_map([], point)?
        .collect()
}

/// Restore points begun before a time that are not there.
pub(crate) fn unfinished(
    tables: &Connection,
    before_ms: i64,
) -> rusqlite::Result<Vec<(BoxId, Label)>> {
    let mut statement = tables.prepare_cached(
        "SELECT box_id, label FROM restore_points WHERE took_us IS NULL AND at_ms < ?",
    )?;
    let rows = statement.query_map([before_ms], |row| {
        let id = BoxId::try_from(row.get::<_, String>(0)?);
        let label = Label::parse(&row.get::<_, String>(1)?);
        Ok((
            id.map_err(|error| unreadable(0, error))?,
            label.map_err(|error| unreadable(1, error))?,
        ))
    })?;
    rows.collect()
}

fn point(row: &Row<'_>) -> rusqlite::Result<PointRow> {
    let box_id = BoxId::try_from(row.get::<_, String>(0)?).map_err(|error| unreadable(0, error))?;
    let label = Label::parse(&row.get::<_, String>(1)?).map_err(|error| unreadable(1, error))?;
    Ok(PointRow {
        box_id,
        label,
        begun: TurnBegun {
            place: Place {
                thread: thread(row, 2)?,
                epoch: row.get(3)?,
            },
            seq: row.get(4)?,
            words: row.get(5)?,
        },
        at_ms: row.get(6)?,
        took_us: row.get(7)?,
    })
}

/// Notes that a journal went back; called with the row that says so.
pub(crate) fn note_way_back(
    tables: &Transaction<'_>,
    place: Place,
    way: WayBack,
) -> rusqlite::Result<()> {
    tables
        .prepare_cached("INSERT INTO ways_back (thread, epoch, at, before) VALUES (?, ?, ?, ?)")?
        .execute((place.thread.as_str(), place.epoch, way.at, way.before))
        .map(drop)
}

/// A copy of a journal went back as the journal did.
pub(crate) fn copy_ways_back(
    tables: &Transaction<'_>,
    from: Place,
    to: Place,
    before: u64,
) -> rusqlite::Result<()> {
    tables
        .prepare_cached(
            "INSERT INTO ways_back (thread, epoch, at, before) SELECT ?1, ?2, at, before \
             FROM ways_back WHERE thread = ?3 AND epoch = ?4 AND at < ?5",
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

/// How a journal went back, oldest first, and the number its next row will have.
pub(crate) fn ways_back(
    tables: &Connection,
    place: Place,
) -> rusqlite::Result<(Vec<WayBack>, u64)> {
    let mut statement = tables.prepare_cached(
        "SELECT at, before FROM ways_back WHERE thread = ? AND epoch = ? ORDER BY at",
    )?;
    let ways = statement.query_map((place.thread.as_str(), place.epoch), |row| {
        Ok(WayBack {
            at: row.get(0)?,
            before: row.get(1)?,
        })
    })?;
    let ways = ways.collect::<rusqlite::Result<_>>()?;
    let end: Option<u64> = tables
        .prepare_cached("SELECT max(seq) + 1 FROM journal WHERE thread = ? AND epoch = ?")?
        .query_row((place.thread.as_str(), place.epoch), |row| row.get(0))?;
    Ok((ways, end.unwrap_or(1)))
}

fn thread(row: &Row<'_>, column: usize) -> rusqlite::Result<ThreadId> {
    ThreadId::try_from(row.get::<_, String>(column)?).map_err(|error| unreadable(column, error))
}

fn unreadable(
    column: usize,
    error: impl std::error::Error + Send + Sync + 'static,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into())
}
