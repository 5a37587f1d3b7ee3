//! What `run`, `ask` and `attach` print with `--json`: one object a line, each with an `event`.
//!
//! ```text
//! thread          which box and thread it is: box_id, name, thread
//! row, grew, caught_up   of the journal, as the host sends them (`box_api::thread::ThreadUpdate`)
//! decision        something no agent asks: it was opened, or is over: name, decision
//! answer_refused  somebody else was faster: decision, why
//! result          the last line, always: outcome, exit, and what is known of the rest
//! ```
//!
//! Kinds and fields are only ever added. Nothing else is on standard output; a failure is told on
//! standard error as well.

use crate::complaint::Complaint;
use crate::output::{Format, Output};
use crate::turn::tally::Tally;
use box_api::control::Reply;
use box_api::network::Waiting;
use box_api::{BoxId, BoxName, DecisionId, Problem, ThreadId};
use serde::Serialize;

/// A line that is no row of the journal.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event<'a> {
    Thread {
        box_id: &'a BoxId,
        name: &'a BoxName,
        thread: &'a ThreadId,
    },
    Decision(&'a Waiting),
    AnswerRefused {
        decision: DecisionId,
        why: &'a str,
    },
    Result(Ended<'a>),
}

impl<'a> Event<'a> {
    /// What a reply means here; most are told otherwise.
    pub(crate) fn of(reply: &'a Reply) -> Option<Self> {
        match reply {
            Reply::Thread {
                box_id,
                name,
                thread,
            } => Some(Self::Thread {
                box_id,
                name,
                thread,
            }),
            Reply::Decision(waiting) => Some(Self::Decision(waiting)),
            Reply::AnswerRefused { decision, why } => Some(Self::AnswerRefused {
                decision: *decision,
                why,
            }),
            Reply::Progress { .. }
            | Reply::Note { .. }
            | Reply::Streams
            | Reply::Output { .. }
            | Reply::Update(_)
            | Reply::Net(_)
            | Reply::Done(_)
            | Reply::Problem(_) => None,
        }
    }
}

/// How it ended.
#[derive(Debug, Serialize)]
pub(crate) struct Ended<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<&'a BoxName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) thread: Option<ThreadId>,
    /// As in a `turn_ended` row; or `waiting` for a person, `left` before the end, `idle` where no
    /// turn was, `error`.
    pub(crate) outcome: &'static str,
    /// Our exit code.
    pub(crate) exit: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<&'a str>,
    /// What the agent said last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) answer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<&'a Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<&'a Problem>,
}

/// The agent's own numbers: how full its context is, in tokens, and what the thread has cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Usage {
    pub(crate) used: u64,
    pub(crate) size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cost: Option<String>,
}

/// The last line of what went to its end.
pub(crate) fn result<'a>(
    (name, thread): (Option<&'a BoxName>, Option<ThreadId>),
    tally: &'a Tally,
    exit: u8,
) -> Event<'a> {
    Event::Result(Ended {
        name,
        thread,
        outcome: tally.word(exit),
        exit,
        note: tally.note(),
        answer: Some(tally.answer()).filter(|answer| !answer.is_empty()),
        usage: tally.usage(),
        problem: None,
    })
}

/// The last line of what could not go to its end. Passes the complaint on.
pub(crate) fn or_result(
    output: &mut Output,
    ended: Result<u8, Complaint>,
) -> Result<u8, Complaint> {
    if let Err(complaint) = &ended
        && let Some(problem) = complaint.problem()
        && output.format() == Format::Json
    {
        output.object(&Event::Result(Ended {
            name: None,
            thread: None,
            outcome: "error",
            exit: complaint.code(),
            note: None,
            answer: None,
            usage: None,
            problem: Some(problem),
        }))?;
    }
    ended
}
