//! What the host knows of one thread: everything [`super::step`] decides by.
//!
//! It is saved whole with every commit of the journal, so whoever takes the thread up after the
//! host died stands exactly where the last committed byte of the agent left it.

use super::back::GoneBack;
use super::parked::Parked;
mod background;
mod offer;
mod phase;
mod queue;

pub(super) use background::{Background, Changed, Stop};
pub use offer::ChooseError;
pub(super) use offer::Offer;
pub(super) use phase::{Opening, Phase, Repeats, Sure};
#[cfg(test)]
pub(super) use queue::QUEUE_PROMPTS_MAX;
pub(super) use queue::{Queue, Steering, Urgency};

use crate::acp::update::Voice;
use crate::acp::{Ask, RpcId};
use crate::agents::AgentProfile;
use crate::agents::profile::Repeating;
use box_api::decision::FormAnswer;
use box_api::thread::{ChosenOption, DecisionOption, Item, ThreadAbilities, TurnOutcome};
use box_api::thread::{
    Decision, DecisionKind, DecisionState, JournalRow, ThreadState as Shown, ToolStatus,
};
use box_api::{BoxId, DecisionId, ThreadId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What does not change while a thread lives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    pub box_id: BoxId,
    pub thread: ThreadId,
    /// The folder the agent works in.
    pub cwd: String,
    /// The mode that asks.
    pub mode_ask: String,
    /// The mode that does not, if the thread may use it and the agent has one.
    pub mode_bypass: Option<String>,
    pub asks: Asks,
    /// How long each answer of the set-up may take, milliseconds.
    pub start_ms_max: i64,
    /// What to do when the agent wants an account.
    pub login: Option<String>,
    /// The `_meta` of opening a conversation.
    pub meta: Map<String, Value>,
    /// The ACP method that takes the box's account, for an agent that wants to be told.
    #[serde(default)]
    pub authenticate: Option<String>,
    /// When the agent repeats a conversation it takes up.
    #[serde(default)]
    pub repeating: Repeating,
}

/// Whether a thread's agent is to ask before it acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asks {
    /// A person answers (decision D8).
    Person,
    /// `--allow-all`: bypass mode where there is one, else the client allows each request once.
    Nobody,
}

impl Settings {
    /// Settings of a thread of this agent.
    pub fn new(profile: &AgentProfile, of: (BoxId, ThreadId), asks: Asks) -> Self {
        let start_ms_max = profile.quirks.start_seconds_max.saturating_mul(1000);
        Self {
            box_id: of.0,
            thread: of.1,
            cwd: box_api::guest::WORKSPACE.to_owned(),
            mode_ask: profile.modes.ask.clone(),
            mode_bypass: profile.modes.bypass.clone(),
            asks,
            start_ms_max: i64::try_from(start_ms_max).unwrap_or(i64::MAX),
            login: profile.login.clone(),
            meta: profile.session_meta.clone(),
            authenticate: profile.authenticate.clone(),
            repeating: profile.quirks.repeating,
        }
    }
}

/// One thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadState {
    pub settings: Settings,
    /// First line of the first prompt until the agent has a better one.
    pub title: String,
    /// Counts the starts of the agent.
    pub generation: u32,
    pub(super) phase: Phase,
    /// There while the agent may still be repeating a conversation it took up.
    #[serde(default)]
    pub(super) repeats: Option<Repeats>,
    /// What the agent calls the conversation.
    pub(super) known_as: Option<String>,
    /// The start of the agent in which it was last told to take the box's account.
    #[serde(default)]
    pub(super) authenticated_in: Option<u32>,
    pub(super) mode: Option<String>,
    pub(super) turn: Option<Turn>,
    pub(super) queue: Queue,
    pub(super) asks: Vec<OpenAsk>,
    /// Tool calls of the running turn, and older ones that are still open.
    pub(super) calls: BTreeMap<String, ToolStatus>,
    /// The last row, if it can grow.
    pub(super) tail: Option<Tail>,
    pub(super) next_seq: u64,
    pub(super) next_rpc: i64,
    pub(super) limit_resets_at_ms: Option<i64>,
    #[serde(default, rename = "tasks")]
    pub(super) background: Background,
    pub(super) last: Option<TurnOutcome>,
    pub(super) garbage: Garbage,
    #[serde(default)]
    pub(super) offer: Offer,
    /// What the agent told of itself when it was last started.
    #[serde(default)]
    pub(super) can: ThreadAbilities,
    /// The end of what it said last.
    #[serde(default)]
    pub(super) said: String,
    #[serde(default)]
    pub(super) titled_by: TitledBy,
    /// The conversation this one is to be a copy of, until it is one.
    #[serde(default)]
    pub(super) fork_of: Option<String>,
    /// No turn begins before this is over.
    #[serde(default)]
    pub(super) parked: Option<Parked>,
    /// Turns in a row that ended at a usage limit.
    #[serde(default)]
    pub(super) limit_retries: u32,
    /// How long a permission waits before it is denied; absent: until somebody answers. The
    /// host's setting, not the thread's.
    #[serde(skip)]
    pub(super) deny_after_ms: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TitledBy {
    #[default]
    Agent,
    /// The agent's own titles are not wanted any more.
    Person,
}

/// The prompt that is being worked on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Turn {
    /// Kept until the agent has shown that it works on it.
    pub(super) prompt: Option<String>,
    /// Under which number it was sent; absent: not yet.
    pub(super) rpc: Option<i64>,
    /// Cancelled; by when the agent must have stopped.
    pub(super) cancel_by_ms: Option<i64>,
    /// Sent again after the agent had forgotten the conversation.
    pub(super) again: Again,
    /// What the agent reported about itself.
    pub(super) health: Health,
    /// It is cancelled only to go on later.
    #[serde(default)]
    pub(super) paused: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Again {
    First,
    Second,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Health {
    Good,
    /// It failed and will end the turn as if it had not.
    SystemError,
}

/// A request of the agent that waits for a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct OpenAsk {
    pub(super) decision: DecisionId,
    /// The agent's number for it, verbatim.
    pub(super) rpc: RpcId,
    pub(super) ask: Ask,
    #[serde(default)]
    pub(super) opened_at_ms: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tail {
    pub(super) seq: u64,
    pub(super) bytes: u64,
    pub(super) voice: Voice,
    pub(super) message: Option<String>,
}

/// Lines that were no messages, of this agent's process.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Garbage {
    /// Since the last message.
    pub(super) in_a_row: u32,
    pub(super) total: u32,
    pub(super) last: Option<String>,
}

/// What happens to a thread.
#[derive(Debug, Clone, PartialEq)]
pub enum ThreadInput {
    Prompt {
        text: String,
    },
    /// A prompt for the running turn.
    Steer {
        text: String,
    },
    /// Something about a prompt that waits.
    Queued(QueueChange),
    /// A person chose; see [`Offer::find`].
    Choose {
        chosen: Vec<ChosenOption>,
    },
    Rename {
        title: String,
    },
    /// The conversation is to be open, without a prompt.
    Open,
    /// One task of the background is to end.
    StopTask {
        task: String,
        by: String,
    },
    /// Rows that are no news of the agent's.
    Write {
        items: Vec<Item>,
    },
    /// Whoever cancels is told in the journal.
    Cancel {
        by: String,
    },
    Answer {
        decision: DecisionId,
        option: String,
        by: String,
    },
    /// A form is filled in or declined, or a request is taken away; see [`ThreadState::takes`].
    AnswerForm {
        decision: DecisionId,
        answer: FormAnswer,
        by: String,
    },
    /// Nothing begins before `until_ms`; absent: before somebody resumes it.
    Park {
        until_ms: Option<i64>,
        by: String,
    },
    /// A budget is used up; `why` says which.
    Pause {
        until_ms: Option<i64>,
        why: String,
    },
    /// There is room in the budget again, by whom or why.
    Unpause {
        why: String,
    },
    /// Goes on where it was parked; `by` is a person, or absent when its time has come.
    Resume {
        by: Option<String>,
    },
    /// The files of the box are as they were, and so is the conversation.
    WentBack(GoneBack),
    /// The agent's process runs.
    Started,
    /// One line of the agent.
    Line(crate::acp::Incoming),
    /// A line that goes beyond its bound.
    LineTooLong,
    /// The agent has printed more than one agent may.
    TooMuchOutput,
    /// The agent's process is gone or could not be started. `why` is a sentence's end, such as
    /// `the agent ended with code 1`; `last_words` the end of its standard error.
    AgentGone {
        why: String,
        last_words: String,
    },
    /// The host was away and has taken the thread up again.
    Reattached,
    /// Time has passed; see [`ThreadState::deadline_ms`].
    Tick,
}

/// What a person does about a prompt that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueueChange {
    Edit { queued: u64, text: String },
    Delete { queued: u64 },
    SendNow { queued: u64 },
}

impl QueueChange {
    pub(super) fn queued(&self) -> u64 {
        let (Self::Edit { queued, .. } | Self::Delete { queued } | Self::SendNow { queued }) = self;
        *queued
    }
}

/// What is to be done about it, in this order. Everything that is a row is committed, together with
/// the state, before anything else of the same step is done.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    Append(JournalRow),
    /// The text of the last row gets longer.
    Grow {
        seq: u64,
        from_byte: u64,
        text: String,
    },
    /// A row of the journal and of the table of decisions.
    OpenDecision {
        seq: u64,
        at_ms: i64,
        decision: Decision,
    },
    CloseDecision(Closed),
    /// One line to the agent, newline included.
    Send(String),
    StartAgent {
        generation: u32,
    },
    /// The process and everything it started.
    KillAgent {
        generation: u32,
    },
}

/// A decision is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    pub seq: u64,
    pub at_ms: i64,
    pub decision: DecisionId,
    pub state: DecisionState,
    /// What was filled in.
    pub content: Option<Map<String, Value>>,
    /// Who answered or cancelled.
    pub by: Option<String>,
    pub note: Option<String>,
}

impl ThreadState {
    /// A thread before its first prompt.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            title: String::new(),
            generation: 0,
            phase: Phase::Absent,
            repeats: None,
            known_as: None,
            authenticated_in: None,
            mode: None,
            turn: None,
            queue: Queue::default(),
            asks: Vec::new(),
            calls: BTreeMap::new(),
            tail: None,
            next_seq: 1,
            next_rpc: 1,
            limit_resets_at_ms: None,
            background: Background::default(),
            last: None,
            garbage: Garbage::default(),
            offer: Offer::default(),
            can: ThreadAbilities::default(),
            said: String::new(),
            titled_by: TitledBy::Agent,
            fork_of: None,
            parked: None,
            limit_retries: 0,
            deny_after_ms: None,
        }
    }

    /// What the thread is doing, as lists show it.
    pub fn shown(&self) -> Shown {
        if !self.asks.is_empty() {
            let question = |open: &OpenAsk| open.ask.about == DecisionKind::Question;
            return if self.asks.iter().all(question) {
                Shown::Asks
            } else {
                Shown::NeedsYou
            };
        }
        match (&self.turn, self.last) {
            (Some(turn), _) if turn.rpc.is_none() => Shown::Starting,
            (Some(_), _) => Shown::Running,
            (None, _) if self.background.is_awake() => Shown::Running,
            (None, _) if self.parked.is_some() => Shown::Parked,
            (None, Some(TurnOutcome::Parked)) => Shown::Parked,
            (None, Some(TurnOutcome::Failed)) => Shown::Failed,
            (None, _) if !self.background.tasks.is_empty() => Shown::Background,
            (None, _) => Shown::Idle,
        }
    }

    /// When [`ThreadInput::Tick`] is wanted next.
    pub fn deadline_ms(&self) -> Option<i64> {
        let setup = self.phase.by_ms(self.repeats.as_ref());
        let cancel = self.turn.as_ref().and_then(|turn| turn.cancel_by_ms);
        let steering = self.queue.on_their_way().map(|(_, by_ms)| by_ms).min();
        [setup, cancel, steering, self.hold_over_ms()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Whether there is to be a process of the agent.
    pub fn wants_agent(&self) -> bool {
        self.phase != Phase::Absent
    }

    /// Whether a prompt is being worked on, or about to be.
    pub(super) fn in_turn(&self) -> bool {
        self.turn.is_some()
    }

    /// Whether the guest has yet to be asked for the process, or to answer.
    pub fn starting(&self) -> bool {
        self.phase == Phase::Starting
    }

    /// Whether another prompt can wait.
    pub fn has_room(&self) -> bool {
        self.queue.has_room()
    }

    /// The options of an open decision.
    pub fn options_of(&self, decision: DecisionId) -> Option<&[DecisionOption]> {
        self.asks
            .iter()
            .find(|ask| ask.decision == decision)
            .map(|ask| ask.ask.options.as_slice())
    }

    /// The open decisions, oldest first.
    pub fn open_decisions(&self) -> impl Iterator<Item = DecisionId> {
        self.asks.iter().map(|ask| ask.decision)
    }

    /// The number of the last row.
    pub fn last_seq(&self) -> u64 {
        self.next_seq - 1
    }
}
