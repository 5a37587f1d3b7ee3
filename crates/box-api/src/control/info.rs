//! What a host tells of itself, of a box and of an agent.

use super::{
    BoxEvent, BoxSettings, CopyMethod, Limits, NetPreset, Origin, Profile, SealInfo, ThreadInfo,
    Traffic,
};
use crate::{BoxId, BoxName, BoxTitle, Owner};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Status {
    pub pid: u32,
    pub build: String,
    pub data_dir: String,
    pub boxes_running: u32,
    pub boxes_stopped: u32,
    /// Boxes begun ahead, which nobody has yet; they take memory and no disk.
    #[serde(default)]
    pub boxes_ahead: u32,
    /// Whether box-egress answers.
    pub egress: bool,
    /// How the host's first engine holds limits, as in [`BoxInfo`].
    #[serde(default)]
    pub limits_held_by: Option<String>,
    /// How it makes copies of boxes.
    #[serde(default)]
    pub copies: Option<CopyMethod>,
    /// How secrets are kept.
    #[serde(default)]
    pub seal: Option<SealInfo>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BoxState {
    Creating,
    Stopped,
    Starting,
    Running,
    Stopping,
    Removing,
    Failed,
    /// Its files are being replaced by those of a snapshot.
    Restoring,
    /// Removed by its owner; its files are kept for a while (D33).
    Trashed,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct BoxInfo {
    pub id: BoxId,
    pub name: BoxName,
    pub title: Option<BoxTitle>,
    pub owner: Owner,
    pub state: BoxState,
    pub runtime: String,
    pub image: String,
    pub profile: Profile,
    pub net: NetPreset,
    pub limits: Limits,
    /// How the limits are held: `cgroup v2`, `cgroup v1` or `best effort`.
    pub limits_held_by: String,
    pub created_at_ms: i64,
    pub threads: Vec<ThreadInfo>,
    /// Host path of the workspace; absent for engines that keep it elsewhere.
    pub workspace: Option<String>,
    /// Process id of the box's pid 1 as the host sees it, while it runs.
    pub pid: Option<u32>,
    /// Why it failed, or why it was stopped without anybody asking.
    pub problem: Option<String>,
    #[serde(default)]
    pub settings: BoxSettings,
    #[serde(default)]
    pub origin: Option<Origin>,
    /// Since when it is in the trash.
    #[serde(default)]
    pub trashed_at_ms: Option<i64>,
    /// Accounts it uses, as `<kind>:<name>`.
    #[serde(default)]
    pub accounts: Vec<String>,
    /// It runs, but all of it stands still until it is touched.
    #[serde(default)]
    pub frozen: bool,
    /// Why, where nobody asked for it: a signal, or idleness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen_why: Option<String>,
    /// What went over its network.
    #[serde(default)]
    pub traffic: Traffic,
    /// The newest of what befell it, newest last.
    #[serde(default)]
    pub events: Vec<BoxEvent>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct AgentInfo {
    pub agent: String,
    pub title: String,
    /// `installed <version>`, `not installed`, `built in`.
    pub state: String,
}
