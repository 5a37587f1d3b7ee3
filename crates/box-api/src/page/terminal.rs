//! The WebSocket `GET /api/boxes/{box}/terminal`: a shell in a box, at a terminal of its own.
//!
//! What is typed and what is printed are binary frames; everything else is JSON. A terminal outlives
//! its socket for a while: a page that was cut off comes back with `?terminal=<id>&from=<byte>` and
//! misses nothing. The host reads on only when the page has taken what was sent.

use serde::{Deserialize, Serialize};

/// Output the page has not taken yet; the host reads no further.
pub const TERMINAL_WINDOW_BYTES: usize = 256 << 10;
/// How long a terminal waits for its page to come back, milliseconds.
pub const TERMINAL_WAIT_MS: u64 = 5 * 60_000;
/// Longest piece of input.
pub const TERMINAL_INPUT_BYTES_MAX: usize = 64 << 10;

/// What the page says, beside what is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "frame", rename_all = "snake_case", deny_unknown_fields)]
pub enum TerminalAsk {
    /// How large it is now.
    Size { rows: u16, columns: u16 },
    /// Everything before this byte of the output is shown.
    Taken { to: u64 },
}

/// What the host says, beside what is printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "frame", rename_all = "snake_case")]
pub enum TerminalSays {
    /// The first frame. Binary frames go on from byte `from`; where that is not what the page has,
    /// it begins with an empty screen.
    Opened { terminal: String, from: u64 },
    /// The shell is over. The last frame.
    Ended { code: i32 },
    /// The last frame: another page took it up, the sign-in was revoked, or the host ends.
    Bye { why: String },
}
