//! A thread's journal as clients see it: rows in order, text rows that grow, decisions.

mod position;
mod shown;

pub use position::{Admitted, Position};
pub use shown::{
    BackgroundTask, ChosenOption, OptionChoice, QueuedPrompt, ThreadAbilities, ThreadInBox,
    ThreadInfo, ThreadOption, ThreadShown,
};

use crate::decision::Form;
use crate::{BoxId, DecisionId, ThreadId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where a client stands in a journal. `epoch` changes when the journal was rebuilt and old
/// cursors mean nothing; `seq` is the last row seen, `bytes` how much of its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Cursor {
    pub epoch: u32,
    pub seq: u64,
    pub bytes: u64,
}

/// What a subscriber is told. Rows come in order of `seq`, each at least once after the cursor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum ThreadUpdate {
    Row(JournalRow),
    /// The text of row `seq` got longer: `text` belongs at byte `from_byte`.
    Grew {
        seq: u64,
        from_byte: u64,
        text: String,
    },
    /// Everything that was there when the client subscribed has been sent.
    CaughtUp {
        cursor: Cursor,
    },
}

/// One row of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct JournalRow {
    pub seq: u64,
    /// UTC, milliseconds since 1970.
    pub at_ms: i64,
    #[serde(flatten)]
    pub item: Item,
}

/// What a row says. Kinds are only ever added; what the host does not know is `Unknown`, whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Item {
    /// What the person asked.
    Prompt { text: String },
    /// What the agent says. Grows.
    Text { text: String },
    /// What the agent thinks. Grows; shown folded.
    Thought { text: String },
    /// A tool call as first seen; later states are `ToolUpdate` rows with the same `call`.
    ToolCall {
        call: String,
        title: String,
        /// ACP's tool kind (`read`, `edit`, `execute`, …) verbatim.
        tool: String,
        status: ToolStatus,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        content: Vec<ToolContent>,
    },
    ToolUpdate {
        call: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<ToolStatus>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        content: Vec<ToolContent>,
    },
    /// The plan as it now stands; replaces the one before.
    Plan { entries: Vec<PlanEntry> },
    /// A decision was opened.
    DecisionOpened(Decision),
    /// A decision is over: answered, cancelled or lost.
    DecisionClosed {
        decision: DecisionId,
        state: DecisionState,
        by: Option<String>,
        note: Option<String>,
    },
    /// The turn is over.
    TurnEnded {
        outcome: TurnOutcome,
        note: Option<String>,
    },
    /// A `!` line of a person: run in the box, never told to the model (C58). `exit` is absent when
    /// it was cut off, and `note` says why: `truncated` or `timed out`.
    Command {
        command: String,
        output: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<i32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// What a person said into the running turn (steering). It opens no turn.
    Steered { text: String },
    /// The prompts that wait, as they now stand; takes the place of the row before. Empty: none.
    Queue { waiting: Vec<QueuedPrompt> },
    /// An option holds from here on, or the agent refused it and says why.
    OptionSet {
        option: String,
        value: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refused: Option<String>,
    },
    /// What the agent runs in the background, as it now stands; takes the place of the row before.
    Background { tasks: Vec<BackgroundTask> },
    /// Background work told the agent something (C49), which may go on by itself from here: what
    /// follows belongs to no prompt. Never shown as a message of the person.
    Woke {
        /// The [`BackgroundTask::task`], if the agent named it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<String>,
        /// What happened, one line.
        summary: String,
        /// The agent's word for how the task stands, such as `completed`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<String>,
        /// What the task said, shown folded (C50).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        said: Option<String>,
    },
    /// The rows above are a copy of another thread's; from here on this one goes its own way.
    Forked { from: ThreadId },
    /// From here on files, agent and conversation are again what they were before row `before`: the
    /// rows between count for nothing (see [`crate::restore_point::is_live`]). `snapshot` is the
    /// label of the box's snapshot they come from.
    WentBack { before: u64, snapshot: String },
    /// Something the host says about the thread, such as a new start of the agent.
    Notice { text: String },
    /// The agent now works in this mode (ACP's mode id, verbatim).
    Mode { mode: String },
    /// How full the agent's context is, in tokens, and what the thread has cost so far.
    Usage {
        used: u64,
        size: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<String>,
    },
    /// Something the host knows that says nothing to a reader (commands on offer, background
    /// tasks), kept whole for programs.
    Detail { raw: Value },
    /// An update of a kind the host does not know, kept whole.
    Unknown { raw: Value },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    Pending,
    Running,
    Completed,
    Failed,
    /// The agent died or was cancelled while the call was open.
    Interrupted,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolContent {
    Text {
        text: String,
    },
    /// `old_text` is absent for a new file.
    Diff {
        path: String,
        old_text: Option<String>,
        new_text: String,
    },
    Other {
        raw: Value,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct PlanEntry {
    pub text: String,
    /// ACP's plan status (`pending`, `in_progress`, `completed`) verbatim.
    pub status: String,
}

/// Something a person must decide. Options are the agent's, verbatim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Decision {
    pub decision: DecisionId,
    pub box_id: BoxId,
    /// Absent for what no agent asks: the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadId>,
    pub about: DecisionKind,
    /// One line that says what is asked.
    pub title: String,
    /// The tool call it belongs to, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// Empty for a form that is more than one choice.
    pub options: Vec<DecisionOption>,
    /// What is to be filled in, of a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Form>,
    /// What is to be read before it is answered: a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    pub state: DecisionState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    Permission,
    Question,
    Network,
    Push,
    /// The agent has a plan and wants to begin.
    Plan,
    /// What models cost has reached a limit of the box.
    Budget,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct DecisionOption {
    /// The agent's own id; opaque.
    pub id: String,
    pub label: String,
    pub kind: OptionKind,
}

/// ACP's permission option kinds; `Choice` is an answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OptionKind {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
    Choice,
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum DecisionState {
    Open,
    Answered {
        option: String,
    },
    Cancelled,
    /// The agent that asked is gone.
    Lost {
        reason: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TurnOutcome {
    Done,
    Failed,
    Refused,
    Cancelled,
    /// A usage limit; the note says when it resets if that is known.
    Parked,
    /// The agent stopped at a limit of its own (tokens, requests).
    StoppedShort,
}

impl TurnOutcome {
    /// 0 done, 1 failed, 3 refused, 4 cancelled, 5 parked, 7 stopped short
    /// (6, waits for a person, is the client's own finding).
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Refused => 3,
            Self::Cancelled => 4,
            Self::Parked => 5,
            Self::StoppedShort => 7,
        }
    }
}

/// What a thread is doing, as far as the host knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ThreadState {
    /// A prompt waits for the agent to be ready.
    Starting,
    Running,
    /// A permission, or anything else but a question, waits for a person.
    NeedsYou,
    /// The agent asked a question.
    Asks,
    Idle,
    /// Nobody talks, and work of the agent goes on in the background.
    Background,
    /// Waits for the end of a usage limit.
    Parked,
    Failed,
}

impl ThreadState {
    /// The sign of decision D27, for titles and lists. The decision names none for a failure.
    pub fn symbol(self) -> char {
        match self {
            Self::Starting | Self::Running => '⟳',
            Self::NeedsYou => '⚠',
            Self::Asks => '?',
            Self::Idle => '○',
            Self::Background => '◍',
            Self::Parked => '⏸',
            Self::Failed => '✗',
        }
    }

    /// Whether a turn is open, or a person is waited for.
    pub fn is_busy(self) -> bool {
        match self {
            Self::Starting | Self::Running | Self::NeedsYou | Self::Asks => true,
            Self::Idle | Self::Background | Self::Parked | Self::Failed => false,
        }
    }
}
