//! What a person must decide: rows, written before anyone is told.
//!
//! The first answer wins; the second learns who gave it. An answer must be one of the options the
//! agent gave, or fill in the form it sent. The host itself never answers (decision D8); what is
//! denied for want of an answer says so.

mod answer;
mod hold;

pub use answer::{AnswerError, Choice, answer, answer_form, choose};
pub use hold::{Fallback, Hold};

use crate::caller::Caller;
use crate::host::Host;
use crate::store::StoreError;
use crate::thread::state::Closed;
use box_api::thread::{Decision, DecisionKind, DecisionState};
use box_api::{BoxId, DecisionId, Owner, ThreadId};
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, types::Type};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Open decisions listed at once.
const OPEN_LISTED_MAX: u32 = 500;

const COLUMNS: &str = "id, box_id, thread, owner, about, title, call, options, state, option, reason, who, form, text, note";

/// A decision's row.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    pub decision: Decision,
    pub owner: Owner,
    /// Who answered or cancelled.
    pub who: Option<String>,
    /// What is said about its end.
    pub note: Option<String>,
}

/// The open decisions of a thread, oldest first.
///
/// # Errors
/// What the store said.
pub async fn open_of_thread(host: &Host, thread: ThreadId) -> Result<Vec<Decision>, StoreError> {
    host.store
        .read(move |tables| {
            let sql = format!(
                "SELECT {COLUMNS} FROM decisions WHERE thread = ? AND state = 'open' \
                 ORDER BY id LIMIT {OPEN_LISTED_MAX}"
            );
            let mut statement = tables.prepare_cached(&sql)?;
            let rows = statement.query_map([thread.as_str()], read)?;
            rows.map(|row| row.map(|record| record.decision)).collect()
        })
        .await
}

/// The open decisions a caller may answer, oldest first.
///
/// # Errors
/// What the store said.
pub async fn open(host: &Host, caller: &Caller) -> Result<Vec<Decision>, StoreError> {
    let caller = *caller;
    host.store
        .read(move |tables| {
            let sql = format!(
                "SELECT {COLUMNS} FROM decisions WHERE state = 'open' AND box_id IN \
                 (SELECT id FROM boxes WHERE state NOT IN ('removing', 'trashed')) ORDER BY id"
            );
            let mut statement = tables.prepare_cached(&sql)?;
            let rows = statement.query_map([], read)?;
            let visible =
                rows.filter(|row| row.as_ref().map_or(true, |row| caller.may(&row.owner)));
            visible
                .take(OPEN_LISTED_MAX as usize)
                .map(|row| row.map(|record| record.decision))
                .collect()
        })
        .await
}

/// The open decisions about the network of a box, oldest first.
///
/// # Errors
/// What the store said.
pub async fn open_of_network(host: &Host, id: BoxId) -> Result<Vec<Decision>, StoreError> {
    host.store
        .read(move |tables| {
            let sql = format!(
                "SELECT {COLUMNS} FROM decisions WHERE box_id = ? AND state = 'open' \
                 AND subject IS NOT NULL ORDER BY id LIMIT {OPEN_LISTED_MAX}"
            );
            let mut statement = tables.prepare_cached(&sql)?;
            let rows = statement.query_map([id.as_str()], read)?;
            rows.map(|row| row.map(|record| record.decision)).collect()
        })
        .await
}

/// # Errors
/// What the database said, or a row this build cannot read.
pub fn get(tables: &Connection, id: DecisionId) -> rusqlite::Result<Option<Record>> {
    let sql = format!("SELECT {COLUMNS} FROM decisions WHERE id = ?");
    tables
        .prepare_cached(&sql)?
        .query_row([id.0], read)
        .optional()
}

/// The highest number a decision has ever had.
///
/// # Errors
/// What the database said.
pub fn highest(tables: &Connection) -> rusqlite::Result<i64> {
    // AUTOINCREMENT keeps it even when the rows are gone (https://sqlite.org/autoinc.html).
    let mut statement =
        tables.prepare_cached("SELECT seq FROM sqlite_sequence WHERE name = 'decisions'")?;
    Ok(statement
        .query_row([], |row| row.get(0))
        .optional()?
        .unwrap_or_default())
}

/// Who asks, beside the decision itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asker {
    pub(crate) owner: Owner,
    /// Of the agent.
    pub(crate) generation: u32,
    pub(crate) at_ms: i64,
}

/// Writes an open decision.
pub(crate) fn insert(
    tables: &Transaction<'_>,
    decision: &Decision,
    asker: Asker,
) -> rusqlite::Result<()> {
    tables
        .prepare_cached(
            "INSERT INTO decisions (id, box_id, thread, owner, generation, about, title, call, \
             options, form, text, state, opened_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, \
             'open', ?)",
        )?
        .execute((
            decision.decision.0,
            decision.box_id.as_str(),
            decision.thread.as_ref().map(ThreadId::as_str),
            asker.owner.to_string(),
            asker.generation,
            about_word(decision.about),
            &decision.title,
            &decision.call,
            json(&decision.options)?,
            decision.form.as_ref().map(json).transpose()?,
            &decision.text,
            asker.at_ms,
        ))?;
    Ok(())
}

/// Closes a decision that is open; one that is not is an error, so that none is answered twice.
pub(crate) fn close(tables: &Transaction<'_>, closed: &Closed) -> rusqlite::Result<()> {
    let (state, option, reason) = match &closed.state {
        DecisionState::Open => ("open", None, None),
        DecisionState::Answered { option } => ("answered", Some(option), None),
        DecisionState::Cancelled => ("cancelled", None, None),
        DecisionState::Lost { reason } => ("lost", None, Some(reason)),
    };
    let changed = tables
        .prepare_cached(
            "UPDATE decisions SET state = ?, option = ?, reason = ?, content = ?, note = ?, who = ?, \
             closed_at_ms = ? WHERE id = ? AND state = 'open'",
        )?
        .execute((
            state,
            option,
            reason,
            closed.content.as_ref().map(json).transpose()?,
            &closed.note,
            &closed.by,
            closed.at_ms,
            closed.decision.0,
        ))?;
    if changed == 1 {
        Ok(())
    } else {
        Err(rusqlite::Error::StatementChangedRows(changed))
    }
}

fn about_word(about: DecisionKind) -> &'static str {
    match about {
        DecisionKind::Permission => "permission",
        DecisionKind::Question => "question",
        DecisionKind::Network => "network",
        DecisionKind::Push => "push",
        DecisionKind::Budget => "budget",
        DecisionKind::Plan => "plan",
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<Record> {
    let state: String = row.get(8)?;
    let state = match state.as_str() {
        "answered" => DecisionState::Answered {
            option: row.get::<_, Option<_>>(9)?.unwrap_or_default(),
        },
        "cancelled" => DecisionState::Cancelled,
        "lost" => DecisionState::Lost {
            reason: row.get::<_, Option<_>>(10)?.unwrap_or_default(),
        },
        _ => DecisionState::Open,
    };
    let options: String = row.get(7)?;
    let decision = Decision {
        decision: DecisionId(row.get(0)?),
        box_id: parsed::<BoxId>(row, 1)?,
        thread: match row.get::<_, Option<String>>(2)? {
            Some(_) => Some(parsed::<ThreadId>(row, 2)?),
            None => None,
        },
        about: word(row, 4)?,
        title: row.get(5)?,
        call: row.get(6)?,
        options: serde_json::from_str(&options).map_err(|error| unreadable(7, error))?,
        form: match row.get::<_, Option<String>>(12)? {
            Some(form) => Some(serde_json::from_str(&form).map_err(|e| unreadable(12, e))?),
            None => None,
        },
        text: row.get(13)?,
        state,
    };
    Ok(Record {
        decision,
        owner: parsed::<Owner>(row, 3)?,
        who: row.get(11)?,
        note: row.get(14)?,
    })
}

fn json<T: Serialize>(value: &T) -> rusqlite::Result<String> {
    serde_json::to_string(value)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

fn parsed<T>(row: &Row<'_>, column: usize) -> rusqlite::Result<T>
where
    T: TryFrom<String, Error: std::error::Error + Send + Sync + 'static>,
{
    T::try_from(row.get(column)?).map_err(|error| unreadable(column, error))
}

fn word<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_value(text.into()).map_err(|error| unreadable(column, error))
}

fn unreadable(
    column: usize,
    error: impl std::error::Error + Send + Sync + 'static,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into())
}
