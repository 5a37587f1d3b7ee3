//! How far an agent's process is, and whether it repeats what the journal has already.

use crate::acp::setup::ModeSetter;
use box_api::thread::ChosenOption;
use serde::{Deserialize, Serialize};

/// How far the agent's process is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::thread) enum Phase {
    /// There is none; the next prompt starts one.
    Absent,
    /// Asked for; the guest has not said yet that it runs.
    Starting,
    /// It was greeted.
    Greeting {
        rpc: i64,
        by_ms: i64,
    },
    /// A conversation is being opened.
    Opening {
        rpc: i64,
        by_ms: i64,
        how: Opening,
    },
    /// The account of the box is being named to it, because it asked for one.
    Authenticating {
        rpc: i64,
        by_ms: i64,
    },
    /// The mode is being set.
    SettingMode {
        rpc: i64,
        by_ms: i64,
        wanted: String,
        setter: ModeSetter,
    },
    /// What a person chose before is being told to it, one thing at a time.
    Choosing {
        rpc: i64,
        by_ms: i64,
        chosen: ChosenOption,
    },
    /// Set up; whether it still repeats what was said before shows in its being quiet.
    Settling {
        /// It is believed to be done by then, quiet or not.
        by_ms: i64,
    },
    Ready,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::thread) enum Opening {
    New,
    /// The agent repeats what the journal has already; none of it is written again.
    Load,
    /// As a copy of another one; the journal has that one's rows.
    Fork,
}

/// After a conversation was taken up or copied: some agents repeat it only once they have answered,
/// as if they said it anew (gemini-cli 0.61 does not wait for its own `streamHistory`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::thread) struct Repeats {
    /// Whether something was repeated, or is known to be.
    pub(in crate::thread) sure: Sure,
    /// When it has been quiet for long enough.
    pub(in crate::thread) quiet_at_ms: i64,
    /// From then on everything is news, however it goes on.
    #[serde(default)]
    pub(in crate::thread) by_ms: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::thread) enum Sure {
    No,
    Yes,
}

impl Phase {
    /// When something has to have happened.
    pub(in crate::thread) fn by_ms(&self, repeats: Option<&Repeats>) -> Option<i64> {
        match self {
            Self::Greeting { by_ms, .. }
            | Self::Opening { by_ms, .. }
            | Self::Authenticating { by_ms, .. }
            | Self::SettingMode { by_ms, .. }
            | Self::Choosing { by_ms, .. } => Some(*by_ms),
            Self::Settling { by_ms } => {
                let quiet_at_ms = repeats.map_or(i64::MIN, |repeats| repeats.quiet_at_ms);
                Some(quiet_at_ms.min(*by_ms))
            }
            Self::Absent | Self::Starting | Self::Ready => None,
        }
    }
}
