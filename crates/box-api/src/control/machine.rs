//! What a box is like: how hard, where it may go, its limits and settings, where it came from.

use crate::budget::Budget;
use crate::control::{Accounts, Priority};
use crate::egress::{GithubScope, Logins};
use crate::network::NetSetName;
use crate::restore_point::TurnUndo;
use crate::{BoxId, BoxName, Label};
use serde::{Deserialize, Serialize};

/// How hard a box is (decision D2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// uid 1020, read-only root, no capability.
    Locked,
    /// uid 0 of its own user namespace, writable root.
    Root,
}

/// Which hosts a box may reach when nothing else is said (decision D32).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NetPreset {
    Balanced,
    Open,
    Locked,
}

/// Limits of a box (decision D11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Limits {
    /// Thousandths of a CPU.
    pub cpu_milli: u32,
    pub memory_bytes: u64,
    pub pids: u32,
    /// Size of the tmpfs that `/tmp`, `/run` and `/dev/shm` share.
    pub tmp_bytes: u64,
    /// Workspace, home and, for `root`, changes to the root.
    pub disk_bytes: u64,
    /// Open files of one process.
    pub open_files: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            cpu_milli: 2000,
            memory_bytes: 4 << 30,
            pids: 512,
            tmp_bytes: 512 << 20,
            disk_bytes: 20 << 30,
            open_files: 65_536,
        }
    }
}

/// What a box is told besides its limits; absent fields are off.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct BoxSettings {
    /// The box is stopped when it has run this long (A23).
    #[serde(default)]
    pub deadline_ms: Option<u64>,
    /// The box is frozen when nothing of it was asked for this long, and thawed on first touch; 0 is
    /// never, absent is as the host's settings say (D12).
    #[serde(default)]
    pub freeze_after_ms: Option<u64>,
    /// Namespaces may be made inside, for containers in a `root` box (D7).
    #[serde(default)]
    pub nested: bool,
    #[serde(default, skip_serializing_if = "Accounts::are_defaults")]
    pub accounts: Accounts,
    /// What becomes of logins made inside (B6).
    #[serde(default, skip_serializing_if = "are_placeholders")]
    pub logins: Logins,
    /// Bytes to and from any one host; past it that host is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net_budget_bytes: Option<u64>,
    /// Connections open at once; absent: what every box has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net_connections: Option<u32>,
    #[serde(default, skip_serializing_if = "OnSignal::is_note")]
    pub on_signal: OnSignal,
    /// The set of rules of the settings that holds for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net_set: Option<NetSetName>,
    /// What it may write at GitHub; nothing, unless somebody says.
    #[serde(default, skip_serializing_if = "GithubScope::is_default")]
    pub github: GithubScope,
    /// Whether it gets a restore point before each turn; absent: as the host's settings say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<TurnUndo>,
    /// Who of the parked threads of an account goes on first.
    #[serde(default, skip_serializing_if = "Priority::is_normal")]
    pub priority: Priority,
    /// What models may cost; absent: as the host's settings say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
}

/// What becomes of a box that does what only a thief does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnSignal {
    /// It is written down. The request itself was refused in any case.
    #[default]
    Note,
    /// It is frozen until its owner thaws it.
    Freeze,
}

impl OnSignal {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde passes a reference"
    )]
    fn is_note(&self) -> bool {
        *self == Self::Note
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn are_placeholders(logins: &Logins) -> bool {
    *logins == Logins::Placeholder
}

/// Where the files of a box came from, when that was no image (B16, B29).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Origin {
    /// Cloned from a box, or from a snapshot of it; ids outlive names.
    Clone {
        id: BoxId,
        name: BoxName,
        #[serde(default)]
        label: Option<Label>,
    },
    /// Imported from an archive. The first and the last time it travelled, and how often.
    Import {
        /// The box the archive was made of, on the host it came from.
        id: BoxId,
        name: BoxName,
        exported_at_ms: i64,
        first_imported_at_ms: i64,
        last_imported_at_ms: i64,
        times: u32,
        /// What it was before it first travelled.
        #[serde(default)]
        before: Option<Box<Self>>,
    },
}
