//! Threads that wait for a time: parked by a usage limit, or by a person.

use crate::{BoxName, ThreadId};
use serde::{Deserialize, Serialize};

/// Parks the threads of a box: what runs is not touched, nothing begins before the time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Park {
    pub name: BoxName,
    /// Absent: every thread of the box.
    pub thread: Option<ThreadId>,
    /// UTC, milliseconds since 1970; absent: until somebody resumes it.
    pub until_ms: Option<i64>,
}

/// Why a thread is parked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Parking {
    /// A usage limit of the agent's account.
    Limit,
    /// A person said so.
    Person,
}

/// A parked thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Parked {
    pub thread: ThreadId,
    pub why: Parking,
    /// When it goes on by itself, UTC milliseconds; absent: when somebody resumes it.
    pub until_ms: Option<i64>,
}

/// Who of the parked goes on first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    High,
    #[default]
    Normal,
    Low,
}

impl Priority {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde passes a reference"
    )]
    pub(super) fn is_normal(&self) -> bool {
        *self == Self::Normal
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Normal => "normal",
            Self::Low => "low",
        }
    }
}
