//! The control socket's words for what can be undone and waited for: snapshots, clones, the trash.

use super::{BoxInfo, Target};
use crate::snapshot::SnapshotInfo;
use crate::{BoxId, BoxName, BoxTitle, Label};
use serde::{Deserialize, Serialize};

/// Longest set-up script (B18), in bytes.
pub const SETUP_BYTES_MAX: usize = 1 << 20;

/// Which of the two marks a new box gets (B14, B18).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marks {
    #[serde(default = "yes")]
    pub pristine: bool,
    #[serde(default = "yes")]
    pub bootstrapped: bool,
}

fn yes() -> bool {
    true
}

impl Default for Marks {
    fn default() -> Self {
        Self {
            pristine: true,
            bootstrapped: true,
        }
    }
}

/// A box made of another one's files (B10). What is not said is as the source has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloneBox {
    pub name: BoxName,
    pub title: Option<BoxTitle>,
    pub source: BoxName,
    /// Absent: the source as it is now, its snapshots included (B16).
    pub label: Option<Label>,
    pub sizes: Sizes,
    pub start: bool,
}

/// Limits and settings a person names beside a source; the others stay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizes {
    #[serde(default)]
    pub cpu_milli: Option<u32>,
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    #[serde(default)]
    pub disk_bytes: Option<u64>,
    #[serde(default)]
    pub pids: Option<u32>,
    #[serde(default)]
    pub open_files: Option<u32>,
    #[serde(default)]
    pub tmp_bytes: Option<u64>,
    #[serde(default)]
    pub deadline_ms: Option<u64>,
    #[serde(default)]
    pub freeze_after_ms: Option<u64>,
    /// Allowed beside what the source may.
    #[serde(default)]
    pub nested: bool,
}

/// How a box goes (D33).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remove {
    pub target: Target,
    /// Its files too, at once; else they are kept in the trash for a while.
    #[serde(default)]
    pub how: Removal,
    #[serde(default)]
    pub workspace: KeepWorkspace,
    /// What becomes of a box with commits that were pushed nowhere.
    #[serde(default)]
    pub unpushed: Unpushed,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Removal {
    /// Kept in the trash for a while.
    #[default]
    Trash,
    Now,
}

/// Whether the next box of the same name gets the workspace (D26).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum KeepWorkspace {
    #[default]
    No,
    Yes,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unpushed {
    #[default]
    Refuse,
    /// Nobody looks.
    Ignore,
}

/// Whether what runs in a box gets the time to end by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Haste {
    #[default]
    Graceful,
    AtOnce,
}

/// What a person waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Awaited {
    Stopped,
    Running,
    /// None of its threads works or asks.
    Idle,
}

/// Longest one request waits; whoever wants to wait longer asks again.
pub const WAIT_MS_MAX: u64 = 600_000;

/// What is wanted of snapshots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "act", rename_all = "snake_case")]
pub enum Snapshots {
    /// Without a label it is named after the time (B9).
    Take {
        target: Target,
        label: Option<Label>,
    },
    List {
        name: BoxName,
    },
    Remove {
        name: BoxName,
        label: Label,
    },
    Restore {
        name: BoxName,
        label: Label,
    },
}

/// What is wanted of the trash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "act", rename_all = "snake_case")]
pub enum Trash {
    List,
    /// Takes a box out, by its id or the name it had, and under another name if one is given.
    Undelete {
        what: String,
        name: Option<BoxName>,
    },
    Prune {
        depth: PruneDepth,
    },
}

/// A snapshot of one box among several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    pub name: BoxName,
    pub snapshot: SnapshotInfo,
}

/// What a restore did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Restored {
    pub info: BoxInfo,
    /// The snapshot that undoes it.
    pub undo: Label,
}

/// Space one box takes on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoxDisk {
    pub id: BoxId,
    pub name: BoxName,
    pub workspace_bytes: u64,
    pub home_bytes: u64,
    /// Changes to the root.
    pub root_bytes: u64,
    /// Shared content counted in full.
    pub snapshots_bytes: u64,
    /// Of these, what was taken before turns.
    #[serde(default)]
    pub restore_points_bytes: u64,
    pub limit_bytes: u64,
}

/// What a clean-up removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pruned {
    /// Names of boxes that were in the trash.
    pub trash: Vec<BoxName>,
    /// Boxes of an engine nobody owns.
    pub strangers: Vec<BoxId>,
    /// Folders of agents' packs that no later box will use.
    pub packs: Vec<String>,
    /// What could not be removed, one line each.
    pub left: Vec<String>,
}

/// How much a clean-up removes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PruneDepth {
    /// What is over its time.
    #[default]
    Expired,
    /// The whole trash, and boxes nobody owns.
    All,
}
