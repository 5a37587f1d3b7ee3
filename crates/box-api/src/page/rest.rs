//! Bodies of the REST interface that are not already words of the control socket.

use crate::control::{
    AgentInfo, BoxEvent, BoxInfo, BoxSettings, BoxState, BoxUsage, Haste, KeepWorkspace, Limits,
    NetPreset, Parked, Profile, Removal, Unpushed,
};
use crate::network::{NetLine, Waiting};
use crate::snapshot::{Label, SnapshotInfo};
use crate::thread::{ChosenOption, ThreadInBox};
use crate::{BoxId, BoxName, BoxTitle, ThreadId};
use serde::{Deserialize, Serialize};

/// A box in the page's list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct BoxCard {
    pub id: BoxId,
    pub name: BoxName,
    pub title: Option<BoxTitle>,
    pub state: BoxState,
    pub frozen: bool,
    pub created_at_ms: i64,
    /// Its threads that work.
    pub running: u32,
    /// Decisions of it that wait: of its threads and of its network.
    pub asks: u32,
    /// All its threads.
    pub threads: u32,
    /// Why it failed, or why it was stopped without anybody asking.
    pub problem: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Boxes {
    pub boxes: Vec<BoxInfo>,
}

/// Newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Threads {
    pub threads: Vec<ThreadInBox>,
}

/// What waits for whoever asks, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Decisions {
    pub decisions: Vec<Waiting>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Agents {
    pub agents: Vec<AgentInfo>,
}

/// What a box did over the network, oldest first; lines of open connections last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct NetLog {
    pub lines: Vec<NetLine>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct UsageNow {
    pub boxes: Vec<BoxUsage>,
    /// The machine below them.
    #[serde(default)]
    pub machine: MachineUsage,
}

/// What a machine has and what of it is in use, by whomever.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct MachineUsage {
    pub cpus: u32,
    /// Thousandths of a CPU that were busy while it was looked at.
    pub cpu_milli: u32,
    pub memory_bytes: u64,
    pub memory_free_bytes: u64,
    /// Of the file system the boxes are on.
    pub disk_bytes: u64,
    pub disk_free_bytes: u64,
}

/// What befell a box, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Events {
    pub events: Vec<BoxEvent>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct SnapshotList {
    pub snapshots: Vec<SnapshotInfo>,
}

/// What this machine offers, for the checklist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Doctor {
    pub findings: Vec<DoctorFinding>,
}

/// One line of the checklist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct DoctorFinding {
    /// What was looked at: `engine`, `limits`, `copies`, `network`, `secrets`, `page`.
    pub what: String,
    pub tint: Tint,
    /// One line that says how it stands.
    pub text: String,
    /// What the person can do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// How good a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Tint {
    Good,
    Off,
    Bad,
}

/// A new box. What is left out is what the host's settings say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewBoxAsk {
    pub name: BoxName,
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub title: Option<BoxTitle>,
    /// `debian:<suite>`, `file:<tar>`.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub image: Option<String>,
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub profile: Option<Profile>,
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub net: Option<NetPreset>,
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub limits: Option<Limits>,
    /// Names the box may reach beside: `host`, `*.host` or `host:port`.
    #[serde(default)]
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    pub allow: Vec<String>,
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub settings: Option<BoxSettings>,
    /// A script that sets the box up (B18); it goes on after the answer.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub setup: Option<String>,
}

/// Sets an agent to work: in a box that is there, else in a new one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RunAsk {
    /// `claude`, `demo`, …
    pub agent: String,
    pub prompt: String,
    /// A box that is there, or the name of the new one; absent: a made-up name.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub name: Option<BoxName>,
    /// Cloned into the workspace before the agent starts.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub repo: Option<String>,
    /// The agent asks for nothing.
    #[serde(default)]
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    pub allow_all: bool,
    /// What of its offer the agent is to use: its mode, its model and the like.
    #[serde(default)]
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    pub chosen: Vec<ChosenOption>,
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub image: Option<String>,
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub profile: Option<Profile>,
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub net: Option<NetPreset>,
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub limits: Option<Limits>,
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub settings: Option<BoxSettings>,
}

/// A turn that was begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Begun {
    pub box_id: BoxId,
    pub name: BoxName,
    pub thread: ThreadId,
}

/// An answer to a decision; the first one wins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AnswerAsk {
    /// The option's own id.
    pub option: String,
}

/// Whether what runs gets the time to end by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Hurry {
    #[serde(default)]
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    pub haste: Haste,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RenameAsk {
    pub to: BoxName,
}

/// How a box is removed; left out: into the trash, and only if nothing in it is unpushed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RemoveAsk {
    #[serde(default)]
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    pub how: Removal,
    #[serde(default)]
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    pub workspace: KeepWorkspace,
    #[serde(default)]
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    pub unpushed: Unpushed,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct UndeleteAsk {
    /// Another name than it had.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub name: Option<BoxName>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TakeAsk {
    /// Without one it is named after the time (B9).
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub label: Option<Label>,
}

/// A `!` line (C58), run in the thread's box and shown in its journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ShellAsk {
    /// Without the `!`.
    pub line: String,
}

/// A new thread of a box, without a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OpenAsk {
    pub agent: String,
    /// The agent asks for nothing.
    #[serde(default)]
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    pub allow_all: bool,
}

/// Parks a thread: nothing of it begins before the time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ParkAsk {
    /// UTC, milliseconds since 1970; absent: until somebody resumes it.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub until_ms: Option<i64>,
}

/// The threads that were parked or go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct ParkedThreads {
    pub threads: Vec<Parked>,
}
