//! The sums, and whose an answer was.

use box_api::egress::usage::{ModelUse, Tokens};
use box_api::{BoxId, ThreadId};
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params, types::Type};

/// Lines of one box and day; what comes on top is added to one without a name. Names of models are
/// the vendors', and threads a person makes: neither is ever so many.
const LINES_A_DAY_MAX: i64 = 2000;

/// Adds an answer, whose thread is looked for. A box that is gone by now costs nothing more.
pub(super) fn add(tables: &Transaction<'_>, used: &ModelUse, day: i64) -> rusqlite::Result<()> {
    let id = used.box_id;
    let thread = thread_of(tables, &id, used.conversation.as_deref())?;
    let thread = thread.unwrap_or_default();
    let lines: i64 = tables
        .prepare_cached("SELECT count(*) FROM model_usage WHERE box_id = ? AND day = ?")?
        .query_row((id.as_str(), day), |row| row.get(0))?;
    let (thread, model) = if lines < LINES_A_DAY_MAX {
        (thread.as_str(), used.model.as_str())
    } else {
        ("", "")
    };
    let count = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    tables
        .prepare_cached(
            "INSERT INTO model_usage (box_id, day, thread, model, credential, answers, unread, \
             input, output, cache_read, cache_write) \
             SELECT id, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11 FROM boxes WHERE id = ?1 \
             ON CONFLICT DO UPDATE SET answers = answers + ?6, unread = unread + ?7, \
             input = input + ?8, output = output + ?9, cache_read = cache_read + ?10, \
             cache_write = cache_write + ?11",
        )?
        .execute(params![
            id.as_str(),
            day,
            thread,
            model,
            used.credential,
            count(used.answers),
            count(used.unread),
            count(used.tokens.input),
            count(used.tokens.output),
            count(used.tokens.cache_read),
            count(used.tokens.cache_write),
        ])
        .map(drop)
}

/// By what the agent calls the conversation; where the request does not say, the thread of the box
/// that is in a turn, if it is the only one.
fn thread_of(
    tables: &Connection,
    id: &BoxId,
    conversation: Option<&str>,
) -> rusqlite::Result<Option<String>> {
    let (sql, name) = match conversation {
        Some(name) => (
            "SELECT id FROM threads WHERE box_id = ?1 \
             AND json_extract(saved, '$.known_as') = ?2 LIMIT 2",
            name,
        ),
        None => (
            "SELECT id FROM threads WHERE box_id = ?1 AND ?2 = '' \
             AND state IN ('starting', 'running', 'needs_you', 'asks') LIMIT 2",
            "",
        ),
    };
    let mut statement = tables.prepare_cached(sql)?;
    let found = statement.query_map((id.as_str(), name), |row| row.get(0))?;
    let found: Vec<String> = found.collect::<rusqlite::Result<_>>()?;
    Ok(match found.as_slice() {
        [only] => Some(only.clone()),
        [] | [_, ..] => None,
    })
}

/// Boxes that run and have cost something.
pub(super) fn running(tables: &Connection) -> rusqlite::Result<Vec<BoxId>> {
    let mut statement = tables.prepare_cached(
        "SELECT id FROM boxes WHERE state = 'running' \
         AND EXISTS (SELECT 1 FROM model_usage WHERE box_id = boxes.id)",
    )?;
    let ids = statement.query_map([], |row| parsed(row, 0))?;
    ids.collect()
}

/// What was used of one model by one thread, today or before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sum {
    /// Absent where it is not known.
    pub(super) thread: Option<ThreadId>,
    pub(super) model: String,
    pub(super) is_today: bool,
    pub(super) tokens: Tokens,
}

pub(super) fn sums(tables: &Connection, id: &BoxId, today: i64) -> rusqlite::Result<Vec<Sum>> {
    let mut statement = tables.prepare_cached(
        "SELECT thread, model, day = ?2, sum(input), sum(output), sum(cache_read), \
         sum(cache_write) FROM model_usage WHERE box_id = ?1 GROUP BY thread, model, day = ?2",
    )?;
    let sums = statement.query_map((id.as_str(), today), |row| {
        Ok(Sum {
            thread: thread(row, 0)?,
            model: row.get(1)?,
            is_today: row.get(2)?,
            tokens: tokens(row, 3)?,
        })
    })?;
    sums.collect()
}

/// Four columns from `at` on.
pub(super) fn tokens(row: &Row<'_>, at: usize) -> rusqlite::Result<Tokens> {
    let count = |column: usize| -> rusqlite::Result<u64> {
        Ok(u64::try_from(row.get::<_, i64>(column)?).unwrap_or_default())
    };
    Ok(Tokens {
        input: count(at)?,
        output: count(at + 1)?,
        cache_read: count(at + 2)?,
        cache_write: count(at + 3)?,
    })
}

/// Empty is none.
pub(super) fn thread(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<ThreadId>> {
    let text: String = row.get(column)?;
    if text.is_empty() {
        return Ok(None);
    }
    ThreadId::try_from(text)
        .map(Some)
        .map_err(|error| unreadable(column, error))
}

pub(super) fn parsed<T>(row: &Row<'_>, column: usize) -> rusqlite::Result<T>
where
    T: TryFrom<String, Error: std::error::Error + Send + Sync + 'static>,
{
    T::try_from(row.get(column)?).map_err(|error| unreadable(column, error))
}

fn unreadable(
    column: usize,
    error: impl std::error::Error + Send + Sync + 'static,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into())
}

/// A thread that may have to rest, or may rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Resting {
    pub(super) thread: ThreadId,
    /// A budget parked it.
    pub(super) is_paused: bool,
}

pub(super) fn threads(tables: &Connection, id: BoxId) -> rusqlite::Result<Vec<Resting>> {
    let mut statement = tables.prepare_cached(
        "SELECT id, coalesce(json_extract(saved, '$.parked.budget'), 0) FROM threads \
         WHERE box_id = ? AND archived_at_ms IS NULL",
    )?;
    let threads = statement.query_map([id.as_str()], |row| {
        Ok(Resting {
            thread: parsed(row, 0)?,
            is_paused: row.get(1)?,
        })
    })?;
    threads.collect()
}

/// Tokens a box ever used, as budgets count them.
pub(super) fn counted(tables: &Connection, id: &BoxId) -> rusqlite::Result<i64> {
    tables
        .prepare_cached(
            "SELECT coalesce(sum(input + output + cache_write), 0) FROM model_usage \
             WHERE box_id = ?",
        )?
        .query_row([id.as_str()], |row| row.get(0))
}

/// What was granted on top of a limit.
pub(super) fn granted(
    tables: &Connection,
    id: &BoxId,
    key: (&str, &str, &str),
) -> rusqlite::Result<u64> {
    let (span, measure, whose) = key;
    let amount: Option<i64> = tables
        .prepare_cached(
            "SELECT amount FROM budget_grants WHERE box_id = ? AND span = ? AND measure = ? \
             AND whose = ?",
        )?
        .query_row((id.as_str(), span, measure, whose), |row| row.get(0))
        .optional()?;
    Ok(u64::try_from(amount.unwrap_or_default()).unwrap_or_default())
}
