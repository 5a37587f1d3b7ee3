//! A thread beside its journal: its line in a list, what it offers, what waits, what goes on.
//!
//! Everything here is a state as it now stands, never a change: whoever missed one reads the next.

use super::ThreadState;
use crate::{BoxId, BoxName, ThreadId};
use serde::{Deserialize, Serialize};

/// A thread in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct ThreadInfo {
    pub thread: ThreadId,
    pub agent: String,
    pub title: String,
    pub state: ThreadState,
    pub created_at_ms: i64,
    /// When its journal or its state last changed; UTC, milliseconds since 1970.
    #[serde(default)]
    pub changed_at_ms: i64,
    /// The last line the agent said, at most 200 characters; empty when it has said nothing.
    #[serde(default)]
    pub last: String,
    /// Prompts that wait for the turn to end.
    #[serde(default)]
    pub queued: u32,
    /// Tasks that go on in the background.
    #[serde(default)]
    pub background: u32,
    /// Decisions that wait for a person.
    #[serde(default)]
    pub decisions: u32,
    /// Put away by its owner: in no list unless asked for, otherwise as any other.
    #[serde(default)]
    pub archived: bool,
    /// The thread it began as a copy of (C52).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ThreadId>,
    /// While [`ThreadState::Parked`]: when the usage limit ends, if the agent said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parked_until_ms: Option<i64>,
}

/// A thread in a list of several boxes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct ThreadInBox {
    pub box_id: BoxId,
    /// The box's.
    pub name: BoxName,
    #[serde(flatten)]
    pub info: ThreadInfo,
}

/// All there is to know of one thread, but for its journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct ThreadShown {
    pub box_id: BoxId,
    /// The box's.
    pub name: BoxName,
    pub info: ThreadInfo,
    /// What the agent lets a person choose (mode, model, effort, …), with what now holds. Empty
    /// before the agent was first started.
    pub options: Vec<ThreadOption>,
    /// Chosen and not in force yet: the agent is told when it next starts, or has yet to answer.
    pub chosen: Vec<ChosenOption>,
    /// In the order they will be sent.
    pub queue: Vec<QueuedPrompt>,
    /// Whether the queue waits for a person: after a turn that failed, was cancelled or parked
    /// nothing is sent by itself.
    pub held: bool,
    pub tasks: Vec<BackgroundTask>,
    pub can: ThreadAbilities,
}

/// What the agent of a thread is able to do, as it said when it was last started.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a word of its own on the wire"
)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct ThreadAbilities {
    /// Take the conversation up again after its process ended.
    pub load: bool,
    /// Begin a copy of the conversation (C52).
    pub fork: bool,
    /// Take a prompt into the running turn. Without it, steering cancels the turn and sends.
    pub steer: bool,
    /// End one background task.
    pub stop_task: bool,
    /// Look at images.
    pub images: bool,
}

/// Something the agent lets a person choose (C48). ACP calls it a configuration option.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct ThreadOption {
    /// The agent's own id, such as `mode`, `model` or `effort`; opaque.
    pub option: String,
    pub label: String,
    /// ACP's category verbatim: `mode`, `model`, `model_config`, `thought_level`, `other`, …
    pub category: String,
    /// One of `choices`; for an option without any, `true` or `false`.
    pub value: String,
    pub choices: Vec<OptionChoice>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct OptionChoice {
    /// The agent's own id; opaque.
    pub value: String,
    pub label: String,
}

/// An option a person chose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct ChosenOption {
    /// A [`ThreadOption::option`] or, where exactly one option has it, a category.
    pub option: String,
    pub value: String,
}

/// A prompt that waits until the turn is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct QueuedPrompt {
    /// Of this thread, never used twice.
    pub queued: u64,
    /// In a journal row at most 16 KiB of it, see `bytes`; whole in [`ThreadShown`].
    pub text: String,
    /// Length of the whole text.
    pub bytes: u64,
}

/// Work of the agent that outlives a turn: a command, a subagent, a monitor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct BackgroundTask {
    /// The agent's own id; opaque.
    pub task: String,
    /// The agent's word for its kind, such as `local_bash`.
    pub about: String,
    /// What it does, one line.
    pub title: String,
    /// Since when the host knows of it; UTC, milliseconds since 1970.
    pub since_ms: i64,
}
