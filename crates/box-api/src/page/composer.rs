//! What the composer of a thread and the controls of a box ask for.

use crate::BoxName;
use crate::snapshot::Label;
use serde::{Deserialize, Serialize};

/// Files of a box's workspace whose paths fit what was typed after an `@`, best first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct FoundFiles {
    /// Paths below the workspace, without a slash in front.
    pub files: Vec<String>,
    /// There are more that fit, or more than were looked at.
    pub more: bool,
}

/// What the agent of a thread offers after a `/`, as it said last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct AgentCommands {
    pub commands: Vec<AgentCommand>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct AgentCommand {
    /// Without the `/`.
    pub name: String,
    /// One line; empty when the agent says nothing of it.
    pub about: String,
    /// What is to be written behind it, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// A box made of another one's files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CloneAsk {
    /// Of the new box.
    pub name: BoxName,
    /// As it was at this snapshot; absent: as it is now.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub label: Option<Label>,
}
