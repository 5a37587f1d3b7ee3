//! What can be changed of a box that is there, what it uses, and what befell it.

use super::{Accounts, BoxState, Limits, OnSignal, Priority};
use crate::budget::Budget;
use crate::egress::Logins;
use crate::egress::github::{GithubWrites, RefPattern, Repository};
use crate::network::NetSetName;
use crate::restore_point::TurnUndo;
use crate::{BoxId, BoxName, BoxTitle};
use serde::{Deserialize, Serialize};

/// Changes of one request.
pub const CHANGES_MAX: usize = 16;
/// Events of one box that are kept; the oldest go first.
pub const EVENTS_PER_BOX_MAX: usize = 100;
/// Events shown with a box.
pub const EVENTS_WITH_BOX_MAX: usize = 5;

/// One thing a box is to have from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "setting", content = "to", rename_all = "snake_case")]
pub enum Change {
    CpuMilli(u32),
    MemoryBytes(u64),
    Pids(u32),
    DiskBytes(u64),
    OpenFiles(u32),
    TmpBytes(u64),
    /// Running time until the box is stopped (A23); absent: none.
    DeadlineMs(Option<u64>),
    /// Idle time until the box is frozen; 0: never; absent: as the host's settings say.
    FreezeAfterMs(Option<u64>),
    /// Namespaces may be made inside (D7).
    Nested(bool),
    Accounts(Accounts),
    Logins(Logins),
    /// Bytes to and from any one host; absent: no end.
    NetBudgetBytes(Option<u64>),
    /// Connections open at once; absent: what every box has.
    NetConnections(Option<u32>),
    OnSignal(OnSignal),
    /// The set of rules of the settings; absent: none.
    NetSet(Option<NetSetName>),
    /// Repositories it may write to.
    Github(Vec<Repository>),
    /// Refs it may write there; empty: those under its own name.
    GithubRefs(Vec<RefPattern>),
    GithubForce(bool),
    GithubTags(bool),
    GithubWrites(GithubWrites),
    /// Restore points before turns; absent: as the host's settings say.
    Undo(Option<TurnUndo>),
    /// Who of the parked threads of an account goes on first.
    Priority(Priority),
    /// What models may cost; absent: as the host's settings say.
    Budget(Option<Budget>),
    Title(Option<BoxTitle>),
}

impl Change {
    /// The name a person says it by.
    pub fn name(&self) -> &'static str {
        match self {
            Self::CpuMilli(_) => "cpu",
            Self::MemoryBytes(_) => "memory",
            Self::Pids(_) => "pids",
            Self::DiskBytes(_) => "disk",
            Self::OpenFiles(_) => "open-files",
            Self::TmpBytes(_) => "tmp",
            Self::DeadlineMs(_) => "deadline",
            Self::FreezeAfterMs(_) => "freeze-after",
            Self::Nested(_) => "nested",
            Self::Accounts(_) => "credential",
            Self::Logins(_) => "logins",
            Self::NetBudgetBytes(_) => "net-budget",
            Self::NetConnections(_) => "net-connections",
            Self::OnSignal(_) => "on-signal",
            Self::NetSet(_) => "net-set",
            Self::Github(_) => "github",
            Self::GithubRefs(_) => "github-refs",
            Self::GithubForce(_) => "github-force",
            Self::GithubTags(_) => "github-tags",
            Self::GithubWrites(_) => "github-writes",
            Self::Undo(_) => "undo",
            Self::Priority(_) => "priority",
            Self::Budget(_) => "budget",
            Self::Title(_) => "title",
        }
    }
}

/// Whether a box is to stand still.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Motion {
    Freeze,
    Thaw,
}

/// What befell a box, in a word. Kinds are only ever added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// Processes were killed for want of memory.
    OutOfMemory,
    /// Processes could not be started.
    OutOfProcesses,
    DiskFull,
    /// There is room on its disk again.
    DiskRoom,
    /// It was stopped at its deadline.
    Deadline,
    Frozen,
    Thawed,
    /// It ended without being asked.
    Ended,
    /// An account it uses could not be renewed, or has run out.
    Credential,
    /// It did over the network what looks like theft or a scan.
    Signal,
    /// Its owner let it reach a private address, or no longer does.
    Private,
    /// What its models cost has reached a limit, or cannot be told.
    Budget,
    /// What a newer host wrote.
    #[serde(other)]
    Other,
}

/// Something that befell a box.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct BoxEvent {
    /// UTC, milliseconds since 1970.
    pub at_ms: i64,
    pub kind: EventKind,
    /// One line for a person.
    pub text: String,
}

/// A box beside what it uses of its limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct BoxUsage {
    pub id: BoxId,
    pub name: BoxName,
    pub state: BoxState,
    pub limits: Limits,
    /// Absent when it does not run, or its engine cannot tell.
    pub used: Option<Used>,
}

/// What a running box uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Used {
    /// CPU time since it started.
    pub cpu_us: u64,
    /// CPU time of the last half second, in thousandths of one CPU.
    pub cpu_milli: u32,
    /// Without what the kernel would give up at once (files read and not used lately).
    pub memory_bytes: u64,
    /// Processes and threads.
    pub processes: u32,
    pub frozen: bool,
    /// Over the network, since the host watches it.
    #[serde(default)]
    pub net: Traffic,
}

/// Bytes over the network, as the box sees them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Traffic {
    pub sent_bytes: u64,
    pub received_bytes: u64,
    /// Of the last seconds, per second.
    pub sent_per_second: u64,
    pub received_per_second: u64,
    /// Connections that are open.
    pub open: u32,
}
