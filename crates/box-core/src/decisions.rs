//! What a person must decide: rows, written before anyone is told.
//!
//! The first answer wins; the second learns who gave it. An answer must be one of the options the
//! agent gave. The host itself never answers (decision D8).

use crate::caller::Caller;
use crate::host::Host;
use crate::network;
use crate::store::StoreError;
use crate::thread::state::Closed;
use crate::thread::{AnswerFailure, ThreadError};
use crate::watch::{self, Awake};
use box_api::thread::{Decision, DecisionKind, DecisionOption, DecisionState, OptionKind};
use box_api::{BoxId, DecisionId, Owner, ThreadId};
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, types::Type};
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// Open decisions listed at once.
const OPEN_LISTED_MAX: u32 = 500;

const COLUMNS: &str =
    "id, box_id, thread, owner, about, title, call, options, state, option, reason, who";

/// A decision's row.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    pub decision: Decision,
    pub owner: Owner,
    /// Who answered or cancelled.
    pub who: Option<String>,
}

/// Why an answer was not taken.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    #[error("there is no decision {0}")]
    Unknown(DecisionId),
    #[error("decision {decision} {}", over(state, who.as_deref()))]
    Over {
        decision: DecisionId,
        state: DecisionState,
        who: Option<String>,
    },
    #[error("`{option}` is not one of the options of decision {decision}")]
    NoSuchOption {
        decision: DecisionId,
        option: String,
        options: Vec<String>,
    },
    #[error(transparent)]
    Thread(#[from] ThreadError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AnswerError {
    /// What the person can do now.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoSuchOption { options, .. } => {
                let options: Vec<String> = options.iter().map(|id| format!("`{id}`")).collect();
                Some(format!("options: {}", options.join(", ")))
            }
            Self::Unknown(_) | Self::Over { .. } | Self::Thread(_) | Self::Store(_) => None,
        }
    }
}

fn over(state: &DecisionState, who: Option<&str>) -> String {
    let by = who.map(|who| format!(" by {who}")).unwrap_or_default();
    match state {
        DecisionState::Open => "is open".to_owned(),
        DecisionState::Answered { option } => format!("was answered{by}: `{option}`"),
        DecisionState::Cancelled => format!("was cancelled{by}"),
        DecisionState::Lost { reason } => format!("is lost: {reason}"),
    }
}

/// Answers a decision of the caller. `option` is an option's id, its label, or `allow`, `reject`
/// and the like, which mean the first option of that kind. `by` is told to whoever comes second.
///
/// # Errors
/// [`AnswerError`]
pub async fn answer(
    host: &Arc<Host>,
    caller: &Caller,
    id: DecisionId,
    option: &str,
    by: &str,
) -> Result<(), AnswerError> {
    let record = find(host, caller, id).await?;
    let option = open_option(&record, option)?;
    let Some(thread) = record.decision.thread else {
        return network::answer(host, record, option, by.to_owned()).await;
    };
    let handle = host.threads.handle(host, thread).await?;
    // The agent hears the answer only while its box runs.
    let _awake = touched(host, handle.box_id()).await;
    match handle.answer(id, option, by.to_owned()).await? {
        Ok(()) => Ok(()),
        // Between the look and the answer somebody was faster, or the agent died.
        Err(AnswerFailure::Over) => {
            let Record { decision, who, .. } = find(host, caller, id).await?;
            Err(AnswerError::Over {
                decision: id,
                state: decision.state,
                who,
            })
        }
    }
}

/// An answer is on record whether or not the agent can hear it now.
async fn touched(host: &Host, id: BoxId) -> Option<Awake> {
    match watch::touch(host, id).await {
        Ok(awake) => awake,
        Err(error) => {
            tracing::warn!(%id, %error, "a box that was answered is not awake");
            None
        }
    }
}

/// The decision, if the caller may see it.
async fn find(host: &Host, caller: &Caller, id: DecisionId) -> Result<Record, AnswerError> {
    let record = host.store.read(move |tables| get(tables, id)).await?;
    record
        .filter(|record| caller.may(&record.owner))
        .ok_or(AnswerError::Unknown(id))
}

/// The id of the option meant, if the decision is open and has it.
fn open_option(record: &Record, option: &str) -> Result<String, AnswerError> {
    let decision = &record.decision;
    if decision.state != DecisionState::Open {
        return Err(AnswerError::Over {
            decision: decision.decision,
            state: decision.state.clone(),
            who: record.who.clone(),
        });
    }
    match choose(&decision.options, option) {
        Some(chosen) => Ok(chosen.id.clone()),
        None => Err(AnswerError::NoSuchOption {
            decision: decision.decision,
            option: option.to_owned(),
            options: decision
                .options
                .iter()
                .map(|option| option.id.clone())
                .collect(),
        }),
    }
}

/// The option meant by `word`: its id, a word for its kind, or its label.
pub fn choose<'a>(options: &'a [DecisionOption], word: &str) -> Option<&'a DecisionOption> {
    let kinds: &[OptionKind] = match word {
        "allow" | "yes" => &[OptionKind::AllowOnce, OptionKind::AllowAlways],
        "reject" | "no" => &[OptionKind::RejectOnce, OptionKind::RejectAlways],
        "allow_once" => &[OptionKind::AllowOnce],
        "allow_always" | "always" => &[OptionKind::AllowAlways],
        "reject_once" => &[OptionKind::RejectOnce],
        "reject_always" | "never" => &[OptionKind::RejectAlways],
        _ => &[],
    };
    let of_kind = |kind: &OptionKind| options.iter().find(|option| option.kind == *kind);
    options
        .iter()
        .find(|option| option.id == word)
        .or_else(|| kinds.iter().find_map(of_kind))
        .or_else(|| options.iter().find(|option| option.label == word))
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
             options, state, opened_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'open', ?)",
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
            serde_json::to_string(&decision.options)
                .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?,
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
            "UPDATE decisions SET state = ?, option = ?, reason = ?, who = ?, closed_at_ms = ? \
             WHERE id = ? AND state = 'open'",
        )?
        .execute((
            state,
            option,
            reason,
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
        state,
    };
    Ok(Record {
        decision,
        owner: parsed::<Owner>(row, 3)?,
        who: row.get(11)?,
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn option(id: &str, label: &str, kind: OptionKind) -> DecisionOption {
        DecisionOption {
            id: id.into(),
            label: label.into(),
            kind,
        }
    }

    #[test]
    fn an_option_is_meant_by_its_id_then_its_kind_then_its_label() {
        let options = [
            option("reject", "No", OptionKind::RejectOnce),
            option("a2", "Always", OptionKind::AllowAlways),
            option("a1", "Yes", OptionKind::AllowOnce),
            option("allow", "Odd", OptionKind::Other),
        ];
        let chosen = |word: &str| choose(&options, word).map(|option| option.id.as_str());
        assert_eq!(chosen("allow"), Some("allow"), "an id comes before a word");
        assert_eq!(chosen("yes"), Some("a1"), "once comes before always");
        assert_eq!(chosen("always"), Some("a2"));
        assert_eq!(chosen("no"), Some("reject"));
        assert_eq!(chosen("Odd"), Some("allow"));
        assert_eq!(chosen("never"), None, "no option of that kind");
        assert_eq!(chosen(""), None);
    }

    #[test]
    fn the_second_learns_who_was_first() {
        let error = AnswerError::Over {
            decision: DecisionId(7),
            state: DecisionState::Answered {
                option: "ok".into(),
            },
            who: Some("uid:1000".into()),
        };
        assert_eq!(
            error.to_string(),
            "decision 7 was answered by uid:1000: `ok`"
        );
        let lost = DecisionState::Lost {
            reason: "the agent ended with code 1".into(),
        };
        assert_eq!(over(&lost, None), "is lost: the agent ended with code 1");
    }
}
