//! Whether something that happened is told, when, and in which words.

use super::message::{Message, about, said};
use super::rows::{About, Note};
use crate::clock::shown_ms;
use crate::decisions;
use box_api::thread::{Decision, DecisionKind, DecisionState, Item, ThreadState, TurnOutcome};
use box_api::{DecisionId, Owner, ThreadId};
use rusqlite::{Connection, OptionalExtension as _};
use serde::de::DeserializeOwned;

/// What becomes of a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Judged {
    /// It is answered, or goes on, or is gone.
    Over,
    /// Not yet: the agent may go on by itself (C112).
    NotYet,
    Tell(Told),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) owner: Owner,
    pub(super) thread: Option<ThreadId>,
    pub(super) decision: Option<DecisionId>,
    pub(super) message: Message,
}

/// Judges a note by how things stand now.
///
/// # Errors
/// What the database said, or a row this build cannot read.
pub(super) fn judge(
    tables: &Connection,
    note: &Note,
    (now_ms, settle_ms): (i64, i64),
) -> rusqlite::Result<Judged> {
    let name = tables
        .prepare_cached(
            "SELECT name FROM boxes WHERE id = ? AND state NOT IN ('removing', 'trashed')",
        )?
        .query_row([note.box_id.as_str()], |row| row.get::<_, String>(0))
        .optional()?;
    let Some(name) = name else {
        return Ok(Judged::Over);
    };
    match note.about {
        About::Decision(decision) => of_decision(tables, &name, decision),
        About::Over(thread) => {
            let Some(found) = thread_of(tables, thread)? else {
                return Ok(Judged::Over);
            };
            let silence = if now_ms - note.at_ms >= settle_ms {
                Silence::Long
            } else {
                Silence::Short
            };
            of_end(tables, (&name, thread), &found, silence)
        }
    }
}

fn of_decision(tables: &Connection, name: &str, id: DecisionId) -> rusqlite::Result<Judged> {
    let Some(record) = decisions::get(tables, id)? else {
        return Ok(Judged::Over);
    };
    if record.decision.state != DecisionState::Open {
        return Ok(Judged::Over);
    }
    let title = match record.decision.thread {
        Some(thread) => thread_of(tables, thread)?.map(|found| found.title),
        None => None,
    };
    let (sign, what) = asked(&record.decision);
    let thread = record.decision.thread;
    Ok(Judged::Tell(Told {
        owner: record.owner,
        thread,
        decision: Some(id),
        message: Message {
            sign,
            about: about(name, &title.unwrap_or_default()),
            what,
            said: said(&record.decision.title),
            more: None,
            path: thread.map_or_else(|| "/".to_owned(), |thread| format!("/t/{thread}")),
            topic: format!("d-{}", id.0),
        },
    }))
}

fn asked(decision: &Decision) -> (char, &'static str) {
    let needs = ThreadState::NeedsYou.symbol();
    match decision.about {
        DecisionKind::Permission => (needs, "May it"),
        DecisionKind::Question => (ThreadState::Asks.symbol(), "It asks"),
        DecisionKind::Network => (needs, "May it reach"),
        DecisionKind::Push => (needs, "May it push"),
        DecisionKind::Plan => (needs, "May it begin"),
        DecisionKind::Budget => (needs, "May it go on"),
    }
}

/// A thread as far as it is told.
struct Found {
    owner: Owner,
    title: String,
    state: ThreadState,
    epoch: i64,
    background: u32,
    parked_until_ms: Option<i64>,
}

fn thread_of(tables: &Connection, thread: ThreadId) -> rusqlite::Result<Option<Found>> {
    let mut statement = tables.prepare_cached(
        "SELECT owner, title, state, epoch, \
         COALESCE(json_extract(summary, '$.background'), 0), \
         json_extract(summary, '$.parked_until_ms') FROM threads WHERE id = ?",
    )?;
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Found {
            owner: crate::sign_ins::owner_of(row.get(0)?)?,
            title: row.get(1)?,
            state: parsed(row.get::<_, String>(2)?.into())?,
            epoch: row.get(3)?,
            background: row.get(4)?,
            parked_until_ms: row.get(5)?,
        })
    };
    statement.query_row([thread.as_str()], read).optional()
}

fn parsed<T: DeserializeOwned>(value: serde_json::Value) -> rusqlite::Result<T> {
    serde_json::from_value(value).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, error.into())
    })
}

/// Whether the agent has said nothing for long enough (C112).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Silence {
    Short,
    Long,
}

fn of_end(
    tables: &Connection,
    (name, thread): (&str, ThreadId),
    found: &Found,
    silence: Silence,
) -> rusqlite::Result<Judged> {
    let what = match found.state {
        // It goes on, or asks: of that there is a note of its own.
        ThreadState::Starting
        | ThreadState::Running
        | ThreadState::NeedsYou
        | ThreadState::Asks => return Ok(Judged::Over),
        ThreadState::Idle | ThreadState::Background if silence == Silence::Short => {
            return Ok(Judged::NotYet);
        }
        ThreadState::Idle | ThreadState::Background => "Done",
        ThreadState::Parked => "Parked",
        ThreadState::Failed => "Failed",
    };
    let (outcome, note) = last_end(tables, thread, found.epoch)?;
    // Somebody stopped it, so somebody was there.
    if outcome == Some(TurnOutcome::Cancelled) {
        return Ok(Judged::Over);
    }
    let what = match outcome {
        Some(TurnOutcome::Refused) => "Refused",
        Some(TurnOutcome::StoppedShort) => "Stopped short",
        Some(TurnOutcome::Done | TurnOutcome::Failed | TurnOutcome::Parked) | None => what,
        Some(TurnOutcome::Cancelled) => return Ok(Judged::Over),
    };
    let is_done = matches!(found.state, ThreadState::Idle | ThreadState::Background);
    let text = match note.filter(|_| !is_done) {
        Some(note) => note,
        None => last_text(tables, thread, found.epoch)?,
    };
    let more = match (found.state, found.background) {
        (ThreadState::Parked, _) => found
            .parked_until_ms
            .map(|until_ms| format!("goes on at {}", shown_ms(until_ms))),
        (_, 0) => None,
        (_, 1) => Some("1 still runs".to_owned()),
        (_, count) => Some(format!("{count} still run")),
    };
    Ok(Judged::Tell(Told {
        owner: found.owner,
        thread: Some(thread),
        decision: None,
        message: Message {
            sign: found.state.symbol(),
            about: about(name, &found.title),
            what,
            said: said(&text),
            more,
            path: format!("/t/{thread}"),
            topic: format!("t-{thread}"),
        },
    }))
}

type Ended = (Option<TurnOutcome>, Option<String>);

fn last_end(tables: &Connection, thread: ThreadId, epoch: i64) -> rusqlite::Result<Ended> {
    let item = last_item(tables, (thread, epoch), "turn_ended")?;
    Ok(match item.map(|(item, _)| item) {
        Some(Item::TurnEnded { outcome, note }) => (Some(outcome), note),
        Some(_) | None => (None, None),
    })
}

fn last_text(tables: &Connection, thread: ThreadId, epoch: i64) -> rusqlite::Result<String> {
    let item = last_item(tables, (thread, epoch), "text")?;
    Ok(item.and_then(|(_, text)| text).unwrap_or_default())
}

fn last_item(
    tables: &Connection,
    (thread, epoch): (ThreadId, i64),
    kind: &str,
) -> rusqlite::Result<Option<(Item, Option<String>)>> {
    let mut statement = tables.prepare_cached(
        "SELECT item, text FROM journal WHERE thread = ? AND epoch = ? \
         AND json_extract(item, '$.kind') = ? ORDER BY seq DESC LIMIT 1",
    )?;
    let read = |row: &rusqlite::Row<'_>| {
        let item: String = row.get(0)?;
        let item = serde_json::from_str(&item).map_err(|error| {
            rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, error.into())
        })?;
        Ok((item, row.get(1)?))
    };
    statement
        .query_row((thread.as_str(), epoch, kind), read)
        .optional()
}
