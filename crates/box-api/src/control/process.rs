//! The control socket's words for what goes on in a box: commands, threads taken up, durable
//! processes and their logs, ports.

use crate::thread::Cursor;
use crate::{BoxName, ThreadId};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exec {
    pub name: BoxName,
    /// Program and arguments; never a shell string.
    pub command: Vec<String>,
    /// Absent: the box's workspace.
    pub cwd: Option<String>,
    #[serde(default)]
    pub env: Vec<(String, String)>,
    /// Present: a terminal of this size, one descriptor; absent: pipes, three descriptors.
    pub terminal: Option<TerminalSize>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Logs {
    pub name: BoxName,
    pub process: Option<String>,
    pub follow: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attach {
    pub name: BoxName,
    pub thread: Option<ThreadId>,
    pub after: Option<Cursor>,
    pub follow: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    pub rows: u16,
    pub columns: u16,
}

/// A process that outlives whoever started it, and the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spawn {
    /// Absent: made of the program's name.
    pub process: Option<String>,
    /// `terminal` must be absent.
    pub exec: Exec,
}

/// How a durable process is ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KillProcess {
    pub name: BoxName,
    pub process: String,
    pub how: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// SIGTERM, and after a while SIGKILL to all it started.
    Ask,
    /// SIGKILL to it and all it started.
    Now,
    /// This signal to its session, and no more.
    Signal(i32),
}

/// A durable process as a person sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessInfo {
    pub process: String,
    pub kind: ProcessKind,
    pub state: ProcessState,
    /// Inside the box, while it runs.
    pub pid: Option<u32>,
    /// Program and arguments; empty for an agent's.
    #[serde(default)]
    pub command: Vec<String>,
    #[serde(default)]
    pub started_at_ms: Option<i64>,
    #[serde(default)]
    pub ended_at_ms: Option<i64>,
}

/// Who started a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessKind {
    /// A person, with `exec --detach`.
    Detached,
    /// A thread.
    Agent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum ProcessState {
    Running,
    /// Its code, or 128+n after signal n; absent when it ended with its box or unseen.
    Ended {
        code: Option<i32>,
    },
}

/// A port of a box shown on this machine's loopback (B94).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exposed {
    pub name: BoxName,
    /// Inside.
    pub port: u16,
    /// On 127.0.0.1.
    pub host_port: u16,
    /// Why nobody listens there although it is wished.
    #[serde(default)]
    pub problem: Option<String>,
}
