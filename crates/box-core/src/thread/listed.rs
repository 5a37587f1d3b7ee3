//! Threads as lists show them, from the tables alone.

use super::saved::{id, unreadable, unword};
use super::state::ThreadState;
use box_api::thread::{ThreadInfo, ThreadShown, ThreadState as Shown};
use box_api::{BoxId, BoxName, ThreadId};
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction};
use serde::{Deserialize, Serialize};

/// Most threads of a box that are listed, newest first.
const THREADS_LISTED_MAX: u32 = 200;
/// Longest last line of a list.
const LAST_CHARS_MAX: usize = 200;

const COLUMNS: &str = "id, agent, title, state, created_at_ms, changed_at_ms, summary, \
                       archived_at_ms IS NOT NULL, forked_from";

/// What a list shows of a thread besides its columns; written with every commit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Summary {
    last: String,
    queued: u32,
    background: u32,
    decisions: u32,
    parked_until_ms: Option<i64>,
}

/// Whether threads that were put away are meant too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Archived {
    Left,
    Too,
}

impl ThreadState {
    /// What a list shows of it, as JSON of a [`Summary`].
    pub(super) fn summary(&self) -> String {
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let lines = self.said.lines().rev().map(str::trim);
        let last = lines.filter(|line| !line.is_empty()).map(visible).next();
        let summary = Summary {
            last: last.unwrap_or_default(),
            queued: count(self.queue.len()),
            background: count(self.background.tasks.len()),
            decisions: count(self.asks.len()),
            parked_until_ms: self.parked.as_ref().and_then(|parked| parked.until_ms),
        };
        #[expect(clippy::expect_used, reason = "made of texts and numbers")]
        serde_json::to_string(&summary).expect("a summary can be written")
    }
}

fn visible(line: &str) -> String {
    let visible = line.chars().filter(|c| !c.is_control());
    visible.take(LAST_CHARS_MAX).collect()
}

/// The threads of a box, newest first.
///
/// # Errors
/// What the database said, or a row this build cannot read.
pub(super) fn of_box(
    tables: &Connection,
    box_id: &BoxId,
    archived: Archived,
) -> rusqlite::Result<Vec<ThreadInfo>> {
    let left = match archived {
        Archived::Left => "AND archived_at_ms IS NULL",
        Archived::Too => "",
    };
    let sql = format!(
        "SELECT {COLUMNS} FROM threads WHERE box_id = ? {left} \
         ORDER BY created_at_ms DESC, rowid DESC LIMIT ?"
    );
    let mut statement = tables.prepare_cached(&sql)?;
    let rows = statement.query_map((box_id.as_str(), THREADS_LISTED_MAX), info)?;
    rows.collect()
}

/// One thread with all that is known of it, but for the name of its box.
///
/// # Errors
/// As [`of_box`].
pub(super) fn shown(
    tables: &Connection,
    thread: ThreadId,
    name: &BoxName,
) -> rusqlite::Result<Option<ThreadShown>> {
    let sql = format!("SELECT {COLUMNS}, box_id, saved FROM threads WHERE id = ?");
    let mut statement = tables.prepare_cached(&sql)?;
    let read = |row: &Row<'_>| {
        let box_id = BoxId::try_from(row.get::<_, String>(9)?);
        let saved: String = row.get(10)?;
        let state: ThreadState =
            serde_json::from_str(&saved).map_err(|error| unreadable(10, error))?;
        Ok(ThreadShown {
            box_id: box_id.map_err(|error| unreadable(9, error))?,
            name: name.clone(),
            info: info(row)?,
            options: state.offer.shown(),
            chosen: state.offer.pending(),
            queue: state.queue.whole(),
            held: state.queue.is_held(),
            tasks: state.background.tasks.clone(),
            can: state.can,
        })
    };
    statement.query_row([thread.as_str()], read).optional()
}

/// Puts a thread away, or takes it out again (`at_ms` absent).
pub(super) fn archive(
    tables: &Transaction<'_>,
    thread: ThreadId,
    at_ms: Option<i64>,
) -> rusqlite::Result<()> {
    tables
        .prepare_cached("UPDATE threads SET archived_at_ms = ? WHERE id = ?")?
        .execute((at_ms, thread.as_str()))?;
    Ok(())
}

fn info(row: &Row<'_>) -> rusqlite::Result<ThreadInfo> {
    let summary: String = row.get(6)?;
    let Summary {
        last,
        queued,
        background,
        decisions,
        parked_until_ms,
    } = serde_json::from_str(&summary).map_err(|error| unreadable(6, error))?;
    let forked_from = row.get::<_, Option<String>>(8)?;
    let forked_from = forked_from.map(ThreadId::try_from).transpose();
    Ok(ThreadInfo {
        thread: id(row, 0)?,
        agent: row.get(1)?,
        title: row.get(2)?,
        state: unword::<Shown>(row, 3)?,
        created_at_ms: row.get(4)?,
        changed_at_ms: row.get(5)?,
        last,
        queued,
        background,
        decisions,
        archived: row.get(7)?,
        forked_from: forked_from.map_err(|error| unreadable(8, error))?,
        parked_until_ms,
    })
}
