//! A thread in the tables: what is there when a host takes it up, and what each commit adds.

use super::batch::{Commit, RowChange};
use super::state::ThreadState;
use crate::decisions::{self, Asker};
use crate::journal::{self, Place};
use crate::parking;
use box_api::guest::ProcessName;
use box_api::thread::{Item, JournalRow};
use box_api::{BoxId, Owner, ThreadId};
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, types::Type};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Lines for the agent read at once.
const OUTBOX_LINES_MAX: u32 = 32;

/// A thread as a host takes it up.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) owner: Owner,
    pub(super) agent: String,
    pub(super) place: Place,
    pub(super) commits: i64,
    pub(super) state: ThreadState,
    /// The process of the agent's current generation.
    pub(super) process: Option<Process>,
    /// The beginning of a line that was too long for the guest to keep.
    pub(super) partial: Vec<u8>,
    /// Processes that are to be ended.
    pub(super) over: Vec<Process>,
}

/// A process of an agent, as far as it is committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) generation: u32,
    pub(super) name: ProcessName,
    pub(super) state: ProcessState,
    /// Output before this is in the tables.
    pub(super) stdout_kept: u64,
    pub(super) stderr_kept: u64,
    /// The end of its standard error.
    pub(super) last_words: String,
    /// Input ever put into the outbox.
    pub(super) input_end: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcessState {
    /// The guest may or may not have been asked for it.
    Wanted,
    Running,
    /// It and everything it started is to be ended, and forgotten by the guest.
    Over,
}

/// What a new thread is.
#[derive(Debug, Clone)]
pub(super) struct NewThread {
    pub(super) owner: Owner,
    pub(super) agent: String,
    pub(super) state: ThreadState,
    pub(super) at_ms: i64,
}

/// Where a thread belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadRecord {
    pub thread: ThreadId,
    pub box_id: BoxId,
    pub owner: Owner,
    pub agent: String,
    pub epoch: u32,
}

/// Writes a thread before its first prompt.
pub(super) fn insert(tables: &Transaction<'_>, new: &NewThread) -> rusqlite::Result<()> {
    let settings = &new.state.settings;
    tables
        .prepare_cached(
            "INSERT INTO threads (id, box_id, owner, agent, title, state, asks, epoch, commits, \
             saved, created_at_ms, changed_at_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 1, 0, ?8, \
             ?9, ?9)",
        )?
        .execute((
            settings.thread.as_str(),
            settings.box_id.as_str(),
            new.owner.to_string(),
            &new.agent,
            &new.state.title,
            word(&new.state.shown())?,
            word(&settings.asks)?,
            json(&new.state)?,
            new.at_ms,
        ))?;
    Ok(())
}

/// Takes a thread up: from here on nobody who took it up before can commit.
pub(super) fn take_up(
    tables: &Transaction<'_>,
    thread: ThreadId,
) -> rusqlite::Result<Option<Loaded>> {
    let row = tables
        .prepare_cached(
            "UPDATE threads SET commits = commits + 1 WHERE id = ? \
             RETURNING owner, agent, epoch, commits, saved",
        )?
        .query_row([thread.as_str()], |row| {
            let saved: String = row.get(4)?;
            let state = serde_json::from_str(&saved).map_err(|error| unreadable(4, error))?;
            let owner = Owner::try_from(row.get::<_, String>(0)?);
            let owner = owner.map_err(|error| unreadable(0, error))?;
            let place = Place {
                thread,
                epoch: row.get(2)?,
            };
            Ok((
                owner,
                row.get::<_, String>(1)?,
                place,
                row.get::<_, i64>(3)?,
                state,
            ))
        })
        .optional()?;
    let Some((owner, agent, place, commits, state)) = row else {
        return Ok(None);
    };
    let state: ThreadState = state;
    let mut over = processes(tables, thread)?;
    let current = over.iter().position(|process| {
        process.generation == state.generation && process.state != ProcessState::Over
    });
    let process = current.map(|at| over.remove(at));
    let partial = match &process {
        Some(process) => partial_line(tables, thread, process.generation)?,
        None => Vec::new(),
    };
    Ok(Some(Loaded {
        owner,
        agent,
        place,
        commits,
        state,
        process,
        partial,
        over,
    }))
}

fn processes(tables: &Connection, thread: ThreadId) -> rusqlite::Result<Vec<Process>> {
    let mut statement = tables.prepare_cached(
        "SELECT generation, name, state, stdout_kept, stderr_kept, last_words, input_end \
         FROM processes WHERE thread = ? ORDER BY generation",
    )?;
    let rows = statement.query_map([thread.as_str()], |row| {
        let name: String = row.get(1)?;
        let state: String = row.get(2)?;
        Ok(Process {
            generation: row.get(0)?,
            name: ProcessName::parse(&name).map_err(|error| unreadable(1, error))?,
            state: match state.as_str() {
                "wanted" => ProcessState::Wanted,
                "running" => ProcessState::Running,
                _ => ProcessState::Over,
            },
            stdout_kept: row.get(3)?,
            stderr_kept: row.get(4)?,
            last_words: row.get(5)?,
            input_end: row.get(6)?,
        })
    })?;
    rows.collect()
}

fn partial_line(
    tables: &Connection,
    thread: ThreadId,
    generation: u32,
) -> rusqlite::Result<Vec<u8>> {
    let mut statement = tables.prepare_cached(
        "SELECT bytes FROM partial_lines WHERE thread = ? AND generation = ? ORDER BY at",
    )?;
    let pieces = statement.query_map((thread.as_str(), generation), |row| row.get(0))?;
    let pieces: Vec<Vec<u8>> = pieces.collect::<rusqlite::Result<_>>()?;
    Ok(pieces.concat())
}

/// The lines for an agent that reach beyond `from`, in order, with their offsets; not all at once.
pub(super) fn outbox_after(
    tables: &Connection,
    (thread, generation): (ThreadId, u32),
    from: u64,
) -> rusqlite::Result<Vec<(u64, Vec<u8>)>> {
    let mut statement = tables.prepare_cached(
        "SELECT at, line FROM outbox WHERE thread = ? AND generation = ? \
         AND at + length(line) > ? ORDER BY at LIMIT ?",
    )?;
    let key = (thread.as_str(), generation, from, OUTBOX_LINES_MAX);
    let lines = statement.query_map(key, |row| Ok((row.get(0)?, row.get(1)?)))?;
    lines.collect()
}

/// What became of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Committed {
    Done,
    /// The thread is gone, or somebody else has taken it up; nothing was written.
    NotOurs,
}

/// Writes a commit, all of it or nothing.
pub(super) fn commit(tables: &Transaction<'_>, commit: &Commit) -> rusqlite::Result<Committed> {
    let thread = commit.place.thread;
    let changed = tables
        .prepare_cached(
            "UPDATE threads SET commits = commits + 1, title = ?, state = ?, saved = ?, \
             summary = ?, changed_at_ms = ? WHERE id = ? AND commits = ?",
        )?
        .execute((
            &commit.title,
            word(&commit.shown)?,
            &commit.saved,
            &commit.summary,
            commit.at_ms,
            thread.as_str(),
            commit.commits,
        ))?;
    if changed != 1 {
        return Ok(Committed::NotOurs);
    }
    parking::keep(tables, thread, commit.parked.as_ref())?;
    for row in &commit.rows {
        write_row(tables, commit, row)?;
    }
    for (seq, line) in &commit.lines {
        journal::keep_line(tables, commit.place, *seq, line)?;
    }
    for process in &commit.processes {
        write_process(tables, thread, process)?;
    }
    write_streams(tables, commit)?;
    for generation in &commit.ended {
        for table in ["outbox", "partial_lines", "processes"] {
            let sql = format!("DELETE FROM {table} WHERE thread = ? AND generation = ?");
            tables
                .prepare_cached(&sql)?
                .execute((thread.as_str(), generation))?;
        }
    }
    Ok(Committed::Done)
}

fn write_row(tables: &Transaction<'_>, commit: &Commit, row: &RowChange) -> rusqlite::Result<()> {
    let place = commit.place;
    match row {
        RowChange::Append(row) => journal::append(tables, place, row),
        RowChange::Grow { seq, text, .. } => journal::grow(tables, place, *seq, text),
        RowChange::Open {
            seq,
            at_ms,
            decision,
            generation,
        } => {
            let (at_ms, generation) = (*at_ms, *generation);
            let asker = Asker {
                owner: commit.owner,
                generation,
                at_ms,
            };
            decisions::insert(tables, decision, asker)?;
            let item = Item::DecisionOpened(decision.clone());
            journal::append(
                tables,
                place,
                &JournalRow {
                    seq: *seq,
                    at_ms,
                    item,
                },
            )
        }
        RowChange::Close(closed) => {
            decisions::close(tables, closed)?;
            journal::append(tables, place, &RowChange::closed_row(closed))
        }
    }
}

fn write_process(
    tables: &Transaction<'_>,
    thread: ThreadId,
    process: &Process,
) -> rusqlite::Result<()> {
    let state = match process.state {
        ProcessState::Wanted => "wanted",
        ProcessState::Running => "running",
        ProcessState::Over => "over",
    };
    tables
        .prepare_cached(
            "INSERT INTO processes (thread, generation, name, state, stdout_kept, stderr_kept, \
             last_words, input_end) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) \
             ON CONFLICT (thread, generation) DO UPDATE SET state = ?4, stdout_kept = ?5, \
             stderr_kept = ?6, last_words = ?7, input_end = ?8",
        )?
        .execute((
            thread.as_str(),
            process.generation,
            process.name.as_str(),
            state,
            process.stdout_kept,
            process.stderr_kept,
            &process.last_words,
            process.input_end,
        ))?;
    Ok(())
}

fn write_streams(tables: &Transaction<'_>, commit: &Commit) -> rusqlite::Result<()> {
    let thread = commit.place.thread;
    for line in &commit.outbox {
        tables
            .prepare_cached(
                "INSERT INTO outbox (thread, generation, at, line) VALUES (?, ?, ?, ?)",
            )?
            .execute((
                thread.as_str(),
                line.generation,
                line.at,
                line.line.as_bytes(),
            ))?;
    }
    if let Some((generation, taken)) = commit.taken {
        tables
            .prepare_cached(
                "DELETE FROM outbox WHERE thread = ? AND generation = ? AND at + length(line) <= ?",
            )?
            .execute((thread.as_str(), generation, taken))?;
    }
    if let Some(generation) = commit.spill.cleared {
        tables
            .prepare_cached("DELETE FROM partial_lines WHERE thread = ? AND generation = ?")?
            .execute((thread.as_str(), generation))?;
    }
    for piece in &commit.spill.pieces {
        tables
            .prepare_cached(
                "INSERT INTO partial_lines (thread, generation, at, bytes) VALUES (?, ?, ?, ?)",
            )?
            .execute((thread.as_str(), piece.generation, piece.at, &piece.bytes))?;
    }
    Ok(())
}

/// # Errors
/// What the database said, or a row this build cannot read.
pub(super) fn get(tables: &Connection, thread: ThreadId) -> rusqlite::Result<Option<ThreadRecord>> {
    tables
        .prepare_cached("SELECT id, box_id, owner, agent, epoch FROM threads WHERE id = ?")?
        .query_row([thread.as_str()], record)
        .optional()
}

/// A thread's epoch and its state after the last commit.
///
/// # Errors
/// As [`get`].
pub(super) fn state(
    tables: &Connection,
    thread: ThreadId,
) -> rusqlite::Result<Option<(u32, ThreadState)>> {
    tables
        .prepare_cached("SELECT epoch, saved FROM threads WHERE id = ?")?
        .query_row([thread.as_str()], |row| {
            let saved: String = row.get(1)?;
            let state = serde_json::from_str(&saved).map_err(|error| unreadable(1, error))?;
            Ok((row.get(0)?, state))
        })
        .optional()
}

/// Notes which thread this one began as a copy of.
pub(super) fn forked_from(
    tables: &Transaction<'_>,
    thread: ThreadId,
    from: ThreadId,
) -> rusqlite::Result<()> {
    tables
        .prepare_cached("UPDATE threads SET forked_from = ? WHERE id = ?")?
        .execute((from.as_str(), thread.as_str()))?;
    Ok(())
}

/// The thread of a box that was begun last and not put away.
///
/// # Errors
/// As [`get`].
pub(super) fn newest(
    tables: &Connection,
    box_id: &BoxId,
) -> rusqlite::Result<Option<ThreadRecord>> {
    tables
        .prepare_cached(
            "SELECT id, box_id, owner, agent, epoch FROM threads WHERE box_id = ? \
             AND archived_at_ms IS NULL ORDER BY created_at_ms DESC, rowid DESC LIMIT 1",
        )?
        .query_row([box_id.as_str()], record)
        .optional()
}

/// Threads somebody must look after: those with a process, or with a turn that has not ended.
///
/// # Errors
/// As [`get`].
pub(super) fn unfinished(tables: &Connection) -> rusqlite::Result<Vec<ThreadId>> {
    let mut statement = tables.prepare_cached(
        "SELECT id FROM threads WHERE state IN ('starting', 'running', 'needs_you', 'asks') \
         OR EXISTS (SELECT 1 FROM processes WHERE thread = threads.id) ORDER BY created_at_ms",
    )?;
    let rows = statement.query_map([], |row| id(row, 0))?;
    rows.collect()
}

fn record(row: &Row<'_>) -> rusqlite::Result<ThreadRecord> {
    let box_id = BoxId::try_from(row.get::<_, String>(1)?).map_err(|error| unreadable(1, error))?;
    let owner = Owner::try_from(row.get::<_, String>(2)?).map_err(|error| unreadable(2, error))?;
    Ok(ThreadRecord {
        thread: id(row, 0)?,
        box_id,
        owner,
        agent: row.get(3)?,
        epoch: row.get(4)?,
    })
}

pub(super) fn id(row: &Row<'_>, column: usize) -> rusqlite::Result<ThreadId> {
    ThreadId::try_from(row.get::<_, String>(column)?).map_err(|error| unreadable(column, error))
}

/// An enum without fields as the word serde writes for it.
fn word<T: Serialize>(value: &T) -> rusqlite::Result<String> {
    Ok(json(value)?.trim_matches('"').to_owned())
}

pub(super) fn unword<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_value(text.into()).map_err(|error| unreadable(column, error))
}

fn json<T: Serialize>(value: &T) -> rusqlite::Result<String> {
    serde_json::to_string(value)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

pub(super) fn unreadable(
    column: usize,
    error: impl std::error::Error + Send + Sync + 'static,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into())
}
