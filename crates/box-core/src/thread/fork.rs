//! A thread that begins as a copy of another one (C52): its journal at once, its agent's
//! conversation by the agent itself. The one it is of goes on as if nothing had happened (C193).

use super::acts::ActError;
use super::calls::find;
use super::saved::{self, NewThread};
use super::state::{OpenAsk, ThreadState};
use super::{AttachError, ThreadHandle};
use crate::agents::{self, UnknownAgent};
use crate::caller::Caller;
use crate::host::Host;
use crate::journal::{self, Place};
use crate::store::{Durability, StoreError};
use box_api::thread::{ChosenOption, DecisionState, Item, JournalRow, ToolStatus, TurnOutcome};
use box_api::{BoxName, Owner, ThreadId};
use rusqlite::Transaction;
use std::sync::Arc;

/// Longest title, characters.
const TITLE_CHARS_MAX: usize = 100;
/// What tells a copy's title from the one it is of.
const MARK: &str = " (fork)";

/// Why a thread was not forked.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    #[error(transparent)]
    Attach(#[from] AttachError),
    #[error("the agent `{0}` cannot fork a conversation")]
    Cannot(String),
    #[error("thread {0} has nothing to fork yet")]
    Nothing(ThreadId),
    #[error(transparent)]
    Agent(#[from] UnknownAgent),
    #[error(transparent)]
    Act(#[from] ActError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ForkError {
    /// What the person can do now.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Attach(error) => error.hint(),
            Self::Cannot(_) => Some(
                "`box new <name> --from <box>` copies the box, `box thread new <box>` begins a thread"
                    .to_owned(),
            ),
            Self::Nothing(_) => Some("ask it something first".to_owned()),
            Self::Agent(error) => Some(error.hint()),
            Self::Act(_) | Self::Store(_) => None,
        }
    }
}

/// Forks a thread of a box of the caller's. When this answers, the new one is there with everything
/// said so far, in plan mode where the agent has one (C53), and its agent is on its way.
///
/// # Errors
/// [`ForkError`]
pub async fn fork(
    host: &Arc<Host>,
    caller: &Caller,
    name: &BoxName,
    thread: Option<ThreadId>,
) -> Result<ThreadHandle, ForkError> {
    let (_, source) = find(host, caller, name, thread).await?;
    let plan = agents::find(&source.agent)?.modes.plan.clone();
    let copy = Copy {
        thread: ThreadId::from_random(host.random.bytes()),
        owner: source.owner,
        agent: source.agent.clone(),
        plan,
        at_ms: host.now_ms(),
    };
    let (new, from) = (copy.thread, source.thread);
    let made = host
        .store
        .write(Durability::Full, move |tables| copy.make(tables, from))
        .await?;
    match made {
        Made::Done => {}
        Made::Cannot => return Err(ForkError::Cannot(source.agent)),
        Made::Nothing => return Err(ForkError::Nothing(from)),
    }
    let handle = host
        .threads
        .handle(host, new)
        .await
        .map_err(AttachError::from)?;
    // At once: later its agent would copy what the other one says meanwhile.
    handle.open().await?;
    Ok(handle)
}

/// What the new thread is, besides what it is a copy of.
struct Copy {
    thread: ThreadId,
    owner: Owner,
    agent: String,
    plan: Option<String>,
    at_ms: i64,
}

enum Made {
    Done,
    Cannot,
    Nothing,
}

impl Copy {
    /// All of it or nothing.
    fn make(self, tables: &Transaction<'_>, from: ThreadId) -> rusqlite::Result<Made> {
        let Some((epoch, source)) = saved::state(tables, from)? else {
            return Ok(Made::Nothing);
        };
        if !source.can.fork {
            return Ok(Made::Cannot);
        }
        let Some(state) = source.forked(self.thread, self.plan.as_deref()) else {
            return Ok(Made::Nothing);
        };
        let new = NewThread {
            owner: self.owner,
            agent: self.agent,
            state,
            at_ms: self.at_ms,
        };
        saved::insert(tables, &new)?;
        saved::forked_from(tables, self.thread, from)?;
        let to = Place {
            thread: self.thread,
            epoch: 1,
        };
        journal::copy(
            tables,
            Place {
                thread: from,
                epoch,
            },
            to,
            source.next_seq,
        )?;
        for (seq, item) in (source.next_seq..).zip(source.loose_ends(from)) {
            let at_ms = self.at_ms;
            journal::append(tables, to, &JournalRow { seq, at_ms, item })?;
        }
        Ok(Made::Done)
    }
}

impl ThreadState {
    /// A thread of the same settings that is to begin as a copy; `None` when its agent has no
    /// conversation to copy.
    fn forked(&self, thread: ThreadId, plan: Option<&str>) -> Option<Self> {
        let of = self.known_as.clone().or_else(|| self.fork_of.clone())?;
        let mut settings = self.settings.clone();
        settings.thread = thread;
        let mut fork = Self::new(settings);
        let kept: String = self
            .title
            .chars()
            .take(TITLE_CHARS_MAX - MARK.len())
            .collect();
        fork.title = format!("{kept}{MARK}");
        fork.fork_of = Some(of);
        fork.can = self.can;
        fork.offer = self.offer.clone();
        fork.offer.nobody_asked();
        if let (Some(plan), Some(option)) = (plan, self.offer.mode_option()) {
            fork.offer.choose(ChosenOption {
                option: option.to_owned(),
                value: plan.to_owned(),
            });
        }
        fork.said.clone_from(&self.said);
        fork.next_seq = self.next_seq + self.loose_ends(self.settings.thread).len() as u64;
        Some(fork)
    }

    /// What goes on in the one it is a copy of does not go on in the copy.
    fn loose_ends(&self, from: ThreadId) -> Vec<Item> {
        let asked = |open: &OpenAsk| Item::DecisionClosed {
            decision: open.decision,
            state: DecisionState::Lost {
                reason: format!("it is thread {from} that is asked"),
            },
            by: None,
            note: None,
        };
        let called = |(call, status): (&String, &ToolStatus)| match status {
            ToolStatus::Pending | ToolStatus::Running => Some(Item::ToolUpdate {
                call: call.clone(),
                title: None,
                status: Some(ToolStatus::Interrupted),
                content: Vec::new(),
            }),
            ToolStatus::Completed | ToolStatus::Failed | ToolStatus::Interrupted => None,
        };
        let ended = Item::TurnEnded {
            outcome: TurnOutcome::Cancelled,
            note: Some(format!("this turn goes on in thread {from}")),
        };
        let mut ends: Vec<Item> = self.asks.iter().map(asked).collect();
        ends.extend(self.calls.iter().filter_map(called));
        ends.extend(self.turn.as_ref().map(|_| ended));
        ends.push(Item::Forked { from });
        ends
    }
}
