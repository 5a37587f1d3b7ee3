//! The other ways in: files for an agent, `!` lines, threads without a prompt.

use crate::{BoxName, ThreadId};
use serde::{Deserialize, Serialize};

/// Largest attachment (C54), bytes.
pub const ATTACHMENT_BYTES_MAX: u64 = 25 << 20;
/// Longest `!` line (C58), characters.
pub const SHELL_LINE_CHARS_MAX: usize = 8000;
/// Most a `!` line may print (C58), bytes.
pub const SHELL_OUTPUT_BYTES_MAX: usize = 256 << 10;
/// Longest piece of a file in one message, bytes before base64.
pub const PIECE_BYTES_MAX: usize = 4 << 20;

/// A file for the agent of a box (C54). Its content follows in `ClientMessage::Piece`, `bytes` of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachFile {
    pub name: BoxName,
    /// As its owner calls it; only the last part of a path counts.
    pub file: String,
    /// At most [`ATTACHMENT_BYTES_MAX`].
    pub bytes: u64,
}

/// A file that comes with a [`super::Run`]; its content follows in `ClientMessage::Piece`, the files
/// in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewAttachment {
    /// As its owner calls it; only the last part of a path counts.
    pub file: String,
    /// At most [`ATTACHMENT_BYTES_MAX`].
    pub bytes: u64,
}

/// Most files that come with one prompt.
pub const ATTACHMENTS_MAX: usize = 10;

/// A file that lies in a box for its agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Attached {
    /// Absolute, inside the box.
    pub path: String,
    /// By its name only, such as `image/png`.
    pub media_type: String,
    pub bytes: u64,
}

/// A line for the shell of a box (C58): run by `bash -lc`, shown in the thread, never told to the
/// model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellLine {
    pub name: BoxName,
    /// In whose journal it is shown; the newest of the box if absent, and none is needed.
    #[serde(default)]
    pub thread: Option<ThreadId>,
    /// At most [`SHELL_LINE_CHARS_MAX`], without the `!`.
    pub line: String,
}

/// How a `!` line ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct ShellEnded {
    /// Absent when it was cut off.
    pub exit: Option<i32>,
    /// `truncated` or `timed out`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A new thread of a box that is there, without a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadOpen {
    pub name: BoxName,
    pub agent: String,
    /// As in [`super::Run`].
    #[serde(default)]
    pub allow_all: bool,
}

/// What a prompt says before its own text of the files that come with it (C54): one line each, in
/// one block. Nothing of the files themselves (C55).
pub fn envelope(attached: &[Attached], text: &str) -> String {
    if attached.is_empty() {
        return text.to_owned();
    }
    let line = |one: &Attached| format!("- {} ({}, {} bytes)", one.path, one.media_type, one.bytes);
    let lines: Vec<String> = attached.iter().map(line).collect();
    let lines = lines.join("\n");
    format!("<attachments>\n{lines}\n</attachments>\n\n{text}")
}
