//! A box's network as its owner reads and rules it: the log, the rules, and what is asked.
//!
//! A connection to a host that is not listed becomes a decision: *once*, *this box*, *all boxes* or
//! *keep blocked*. There is one open decision for each host and port of a box, whoever asks how
//! often. The first answer wins; what it says is in the rows before box-egress hears of it.

pub mod lint;
pub mod live;
pub mod log;
pub mod policy;
mod process;
pub mod rules;
pub mod signals;

use crate::boxes::{self, BoxRecord};
use crate::decisions::{self, AnswerError, Asker};
use crate::egress::Surroundings;
use crate::host::Host;
use crate::store::{Durability, StoreError};
use crate::thread::state::Closed;
use box_api::control::BoxSettings;
use box_api::egress::HostName;
use box_api::egress::name::WEB_PORTS;
use box_api::thread::{Decision, DecisionKind, DecisionOption, DecisionState, OptionKind};
use box_api::{BoxId, DecisionId};
pub(crate) use process::look_for as look_for_process;
use rules::{Ruling, Scope};
use rusqlite::{Connection, OptionalExtension as _, Transaction};

/// Whether box-egress has to be told of a change.
pub(crate) fn differs(before: &BoxSettings, after: &BoxSettings) -> bool {
    before.net_budget_bytes != after.net_budget_bytes
        || before.net_connections != after.net_connections
}

/// Open decisions about the network one box can have; past that a host is refused unasked.
const OPEN_MAX: i64 = 100;

/// What a person can say, in the order it is offered.
const OPTIONS: [(&str, &str, OptionKind); 4] = [
    ("once", "allow once", OptionKind::AllowOnce),
    ("box", "allow for this box", OptionKind::AllowAlways),
    ("all", "allow for all my boxes", OptionKind::AllowAlways),
    ("block", "keep blocked", OptionKind::RejectAlways),
];

/// A connection waits: asks about it, unless that was asked already.
pub(crate) async fn ask(
    around: &Surroundings,
    box_id: BoxId,
    (host, port): (HostName, u16),
    at_ms: i64,
) -> Result<(), StoreError> {
    let subject = format!("{host}:{port}");
    let (read, asked) = (around.store.clone(), subject.clone());
    // A box asks as often as it likes: only what is new costs a number and a write to disk.
    let opened = match read
        .read(move |rows| standing(rows, &box_id, &asked))
        .await?
    {
        Standing::Open(decision) => Some(*decision),
        Standing::NoMore => None,
        Standing::New => {
            let number = around.threads.next_decision(&around.store).await?;
            let open = move |rows: &Transaction<'_>| open(rows, box_id, (number, subject), at_ms);
            around.store.write(Durability::Full, open).await?
        }
    };
    if let Some(decision) = opened {
        around.people.tell(&decision);
    }
    Ok(())
}

/// How things stand with a host that a box wants to reach.
enum Standing {
    New,
    /// Told again: whoever looks now may not have looked then.
    Open(Box<Decision>),
    /// The box is gone, or has asked too much.
    NoMore,
}

fn standing(rows: &Connection, box_id: &BoxId, subject: &str) -> rusqlite::Result<Standing> {
    if !boxes::rows::get(rows, box_id)?.is_some_and(|record| record.is_live()) {
        return Ok(Standing::NoMore);
    }
    let known: Option<i64> = rows
        .prepare_cached(
            "SELECT id FROM decisions WHERE box_id = ?1 AND subject = ?2 AND state = 'open'",
        )?
        .query_row((box_id.as_str(), subject), |row| row.get(0))
        .optional()?;
    if let Some(known) = known {
        let record = decisions::get(rows, DecisionId(known))?;
        return Ok(record.map_or(Standing::NoMore, |record| {
            Standing::Open(Box::new(record.decision))
        }));
    }
    let open: i64 = rows
        .prepare_cached(
            "SELECT count(*) FROM decisions WHERE box_id = ?1 AND state = 'open' \
             AND subject IS NOT NULL",
        )?
        .query_row([box_id.as_str()], |row| row.get(0))?;
    Ok(if open < OPEN_MAX {
        Standing::New
    } else {
        Standing::NoMore
    })
}

/// Writes a decision, unless things have changed since they were looked at.
fn open(
    rows: &Transaction<'_>,
    box_id: BoxId,
    (number, subject): (DecisionId, String),
    at_ms: i64,
) -> rusqlite::Result<Option<Decision>> {
    let record = match standing(rows, &box_id, &subject)? {
        Standing::New => boxes::rows::get(rows, &box_id)?,
        Standing::Open(decision) => return Ok(Some(*decision)),
        Standing::NoMore => None,
    };
    let Some(record) = record else {
        return Ok(None);
    };
    let decision = decision(&record, number, &subject);
    let asker = Asker {
        owner: record.owner,
        generation: 0,
        at_ms,
    };
    decisions::insert(rows, &decision, asker)?;
    rows.execute(
        "UPDATE decisions SET subject = ?2 WHERE id = ?1",
        (number.0, &subject),
    )?;
    Ok(Some(decision))
}

fn decision(record: &BoxRecord, number: DecisionId, subject: &str) -> Decision {
    let option = |(id, label, kind): (&str, &str, OptionKind)| DecisionOption {
        id: id.to_owned(),
        label: label.to_owned(),
        kind,
    };
    Decision {
        decision: number,
        box_id: record.id,
        thread: None,
        about: DecisionKind::Network,
        title: format!(
            "box `{}` wants to reach {subject}, which is not on its list",
            record.name
        ),
        call: None,
        options: OPTIONS.into_iter().map(option).collect(),
        form: None,
        text: None,
        state: DecisionState::Open,
    }
}

/// What follows from an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Once,
    Rule(Scope, Ruling),
}

fn meaning(option: &str) -> Option<Meaning> {
    match option {
        "once" => Some(Meaning::Once),
        "box" => Some(Meaning::Rule(Scope::Box, Ruling::Allow)),
        "all" => Some(Meaning::Rule(Scope::Owner, Ruling::Allow)),
        "block" => Some(Meaning::Rule(Scope::Box, Ruling::Deny)),
        _ => None,
    }
}

/// Carries out an answer that was checked to be one of the options.
pub(crate) async fn answer(
    host: &Host,
    record: decisions::Record,
    option: String,
    by: String,
) -> Result<(), AnswerError> {
    let owner = record.owner;
    let mut decision = record.decision;
    let (id, box_id) = (decision.decision, decision.box_id);
    let unknown = || AnswerError::Unknown(id);
    let meaning = meaning(&option).ok_or_else(unknown)?;
    let closed = Closed {
        content: None,
        seq: 0,
        at_ms: host.now_ms(),
        decision: id,
        state: DecisionState::Answered { option },
        by: Some(by),
        note: None,
    };
    decision.state = closed.state.clone();
    let written = host.store.write(Durability::Full, move |rows| {
        let subject: Option<String> = rows
            .query_row(
                "SELECT subject FROM decisions WHERE id = ?1 AND state = 'open'",
                [id.0],
                |row| row.get(0),
            )
            .optional()?
            .flatten();
        // Somebody was faster.
        let Some((name, port)) = subject.as_deref().and_then(parse_subject) else {
            return Ok(None);
        };
        decisions::close(rows, &closed)?;
        if let Meaning::Rule(scope, ruling) = meaning {
            let rule = rules::Rule {
                entry: entry(&name, port),
                ruling,
                box_id: (scope == Scope::Box).then_some(box_id),
            };
            rules::put(rows, &owner, &rule, closed.at_ms)?;
        }
        Ok(Some((name, port)))
    });
    let Some((name, port)) = written.await? else {
        let record = host
            .store
            .read(move |rows| decisions::get(rows, id))
            .await?;
        let record = record.ok_or_else(unknown)?;
        return Err(AnswerError::Over {
            decision: id,
            state: record.decision.state,
            who: record.who,
            note: record.note,
        });
    };
    host.people.tell(&decision);
    let told = match meaning {
        Meaning::Once => host.egress.allow_once(box_id, name, port).await,
        Meaning::Rule(scope, _) => {
            rules::hand_over(host, owner, (scope == Scope::Box).then_some(box_id)).await?;
            Ok(())
        }
    };
    if let Err(error) = told {
        tracing::warn!(id = %box_id, %error, "box-egress did not hear of an answer");
    }
    Ok(())
}

fn parse_subject(subject: &str) -> Option<(HostName, u16)> {
    let (host, port) = subject.rsplit_once(':')?;
    Some((HostName::parse(host).ok()?, port.parse().ok()?))
}

/// The entry that lets a host and port through: ports of the web go without saying.
fn entry(host: &HostName, port: u16) -> String {
    if WEB_PORTS.contains(&port) {
        host.to_string()
    } else {
        format!("{host}:{port}")
    }
}

/// An entry as a person writes it, in the form rows keep.
///
/// # Errors
/// What is wrong with it.
pub fn parse_entry(text: &str) -> Result<String, box_api::egress::EntryError> {
    box_api::egress::Entry::parse(text).map(|entry| entry.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_means_something() {
        for (id, ..) in OPTIONS {
            assert!(meaning(id).is_some(), "{id}");
        }
        assert_eq!(meaning("yes"), None);
    }

    #[test]
    fn an_entry_names_the_port_only_where_it_is_unusual() {
        let host = HostName::parse("git.test").unwrap();
        assert_eq!(entry(&host, 443), "git.test");
        assert_eq!(entry(&host, 2222), "git.test:2222");
        assert_eq!(parse_subject("git.test:2222"), Some((host, 2222)));
        assert_eq!(parse_subject("git.test"), None);
    }
}
