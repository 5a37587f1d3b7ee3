//! What a person does with the threads of a box, besides reading and prompting.

use crate::thread::ChosenOption;
use crate::{BoxName, ThreadId};
use serde::{Deserialize, Serialize};

/// Most options set at once.
pub const CHOSEN_OPTIONS_MAX: usize = 16;

/// Threads of one box, or of every box of the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadsAsk {
    pub name: Option<BoxName>,
    /// Those that were put away as well.
    #[serde(default)]
    pub archived: bool,
}

/// One thing to do with one thread. Answered with `Outcome::ThreadShown`, the thread as it stands
/// afterwards; of a fork, the new one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadAsk {
    pub name: BoxName,
    /// The newest of the box that is not archived, if absent.
    #[serde(default)]
    pub thread: Option<ThreadId>,
    pub act: ThreadAct,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "act", rename_all = "snake_case")]
pub enum ThreadAct {
    Show,
    /// 1–100 characters; the agent's own titles are ignored from then on.
    Rename {
        title: String,
    },
    Archive,
    Unarchive,
    /// Cancels the running turn; prompts that wait are held.
    Cancel,
    /// At most [`CHOSEN_OPTIONS_MAX`].
    Set {
        chosen: Vec<ChosenOption>,
    },
    /// A prompt: at once when no turn runs, else after those that wait.
    Prompt {
        text: String,
    },
    /// A prompt for the running turn; when none runs, as `Prompt`.
    Steer {
        text: String,
    },
    /// Gives a prompt that waits another text.
    Edit {
        queued: u64,
        text: String,
    },
    /// Deletes a prompt that waits.
    Unqueue {
        queued: u64,
    },
    /// Sends a prompt that waits before all others: into the running turn, or now.
    SendNow {
        queued: u64,
    },
    /// A copy of the thread that goes its own way, in plan mode (C52, C53).
    Fork,
    /// Ends one task of the background.
    StopTask {
        task: String,
    },
}

/// Largest recorded conversation that is taken in, bytes.
pub const RECORDED_BYTES_MAX: u64 = 64 << 20;
/// Damaged lines of it that are told.
pub const DAMAGED_TOLD_MAX: usize = 20;

/// A conversation an agent recorded elsewhere. Its content follows in `ClientMessage::Piece`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadImport {
    pub name: BoxName,
    /// As its owner calls the file.
    pub file: String,
    /// At most [`RECORDED_BYTES_MAX`].
    pub bytes: u64,
}

/// The thread it became.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadImported {
    pub name: BoxName,
    pub thread: ThreadId,
    pub agent: String,
    pub rows: u64,
    /// Whether the next prompt goes on with the conversation.
    pub goes_on: bool,
    /// The first of the lines that could not be read.
    pub damaged: Vec<DamagedLine>,
    pub damaged_count: u64,
}

/// A line of a file that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DamagedLine {
    /// From 1 on.
    pub line: u64,
    pub why: String,
}
