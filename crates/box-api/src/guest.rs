//! How the host speaks with box-guest, pid 1 of a box, over a stream socket.
//!
//! The host connects, sends one frame of kind *request*, and the connection is that operation until
//! its last reply; then the guest closes it. Frames are `u32` little-endian length, one byte
//! [`FrameKind`], payload; the length counts kind and payload and is at most [`FRAME_BYTES_MAX`].
//! Requests, messages and replies are JSON; data frames are [`Piece`]s of raw bytes.
//!
//! | Request | Replies | While it runs the host may send |
//! | --- | --- | --- |
//! | `Exec` | `Streams` (descriptors beside its first byte), then `Exited` | `Signal` |
//! | `Dial` | `Streams` (one connected socket beside its first byte) | – |
//! | `Spawn` | `Started` | – |
//! | `Attach` | `Attached`, then pieces, `Input`, at last `Ended` or `Displaced` | pieces of input, `CloseInput`, `Ack` |
//! | `List` | `Processes` | – |
//! | `Kill`, `Forget` | `Done` | – |
//! | `Ping` | `Pong` | – |
//!
//! In place of any reply the guest may say `Refused` and close. A frame the guest does not
//! understand, or one out of place, ends the connection the same way and nothing else.
//!
//! **Exec** lives as long as its connection: closed before `Exited`, the guest kills the command's
//! whole session. Descriptors are stdin (write end), stdout and stderr (read ends), or one terminal
//! made from the box's own `/dev/ptmx`. What the command left running in the background goes on.
//!
//! **Dial** gives a TCP socket that was made in the box's network namespace and is connected, or
//! connecting, to one port of its loopback. A guest of an earlier build refuses it as `Malformed`.
//!
//! **Output** of a process has offsets from 0, one count a stream. The guest keeps every byte until
//! an `Ack` passes it, at most [`SPOOL_BYTES_MAX`] a stream; then it stops reading and the process
//! waits. `Ended` comes after the last byte that was in the pipe when the process ended.
//!
//! **Input** has offsets too. A byte counts as taken once it is in the guest's queue for that
//! process (at most [`INPUT_QUEUE_BYTES_MAX`]): from there it reaches the pipe in order, whatever
//! becomes of the host, as long as the process lives and reads. A piece may begin before the
//! taken offset (those bytes are ignored), never after it, and never reach past the window last
//! told. So an input sent again after a lost connection is taken once.

mod frame;
mod name;

pub use frame::{Frame, FrameKind, FrameReader, Piece, ProtocolError};
pub use name::{ProcessName, ProcessNameError};

use crate::control::TerminalSize;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Version of this protocol, told in [`Reply::Pong`].
pub const GUEST_PROTOCOL: u32 = 1;
/// Longest frame, kind byte included, either side accepts.
pub const FRAME_BYTES_MAX: usize = 1 << 20;
/// Most bytes one [`Piece`] carries.
pub const PIECE_BYTES_MAX: usize = 64 << 10;
/// Unacknowledged output the guest keeps, a stream.
pub const SPOOL_BYTES_MAX: usize = 8 << 20;
/// Taken input not yet in the process's pipe.
pub const INPUT_QUEUE_BYTES_MAX: usize = 1 << 20;
/// Durable processes, ended ones not yet forgotten included.
pub const PROCESSES_MAX: usize = 256;
/// Connections at once.
pub const CONNECTIONS_MAX: usize = 64;
/// Program and arguments.
pub const ARGUMENTS_MAX: usize = 4096;
/// Variables of one command.
pub const VARIABLES_MAX: usize = 1024;
/// Program, arguments, folder and variables together, each with its closing zero.
pub const COMMAND_BYTES_MAX: usize = 512 << 10;
/// One argument or variable; the kernel's own limit (`MAX_ARG_STRLEN`, execve(2)).
pub const ARGUMENT_BYTES_MAX: usize = 128 << 10;
/// Longest text of a refusal or a failure.
pub const TEXT_BYTES_MAX: usize = 4 << 10;
/// Where a command runs when its request names no folder.
pub const WORKSPACE: &str = "/workspace";
/// Every durable process and what it starts carries its name in this variable.
pub const PROCESS_VARIABLE: &str = "BOX_PROCESS";

/// What to run and how. Values of variables may be credentials of the box, so they are not shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// Program and arguments. A program without `/` is looked up in the `PATH` it will run with.
    pub arguments: Vec<String>,
    /// Absolute.
    pub folder: String,
    /// Added to, and winning over, the environment the guest itself was started with.
    #[serde(default)]
    pub variables: Vec<(String, String)>,
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self
            .variables
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        f.debug_struct("Command")
            .field("arguments", &self.arguments)
            .field("folder", &self.folder)
            .field("variables", &names)
            .finish()
    }
}

/// Why a [`Command`] was refused before anything ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    #[error("a command needs a program")]
    NoProgram,
    #[error("a command has at most {ARGUMENTS_MAX} arguments")]
    Arguments,
    #[error("a command has at most {VARIABLES_MAX} variables")]
    Variables,
    #[error("a command with its variables has at most {COMMAND_BYTES_MAX} bytes")]
    Bytes,
    #[error("an argument or a variable has at most {ARGUMENT_BYTES_MAX} bytes")]
    Argument,
    #[error("arguments, variables and folders hold no zero byte")]
    Zero,
    #[error("a variable's name is not empty and holds no `=`")]
    VariableName,
    #[error("the folder of a command is an absolute path")]
    Folder,
}

impl Command {
    /// Checks every limit; both sides do.
    pub fn check(&self) -> Result<(), CommandError> {
        if self.arguments.first().is_none_or(String::is_empty) {
            return Err(CommandError::NoProgram);
        }
        if self.arguments.len() > ARGUMENTS_MAX {
            return Err(CommandError::Arguments);
        }
        if self.variables.len() > VARIABLES_MAX {
            return Err(CommandError::Variables);
        }
        if !self.folder.starts_with('/') {
            return Err(CommandError::Folder);
        }
        if self
            .variables
            .iter()
            .any(|(name, _)| name.is_empty() || name.contains('='))
        {
            return Err(CommandError::VariableName);
        }
        self.check_bytes()
    }

    fn check_bytes(&self) -> Result<(), CommandError> {
        let words = self.arguments.iter().chain([&self.folder]);
        let variables = self
            .variables
            .iter()
            .flat_map(|(name, value)| [name, value]);
        if words
            .clone()
            .chain(variables)
            .any(|text| text.contains('\0'))
        {
            return Err(CommandError::Zero);
        }
        let lengths = words.map(|word| word.len() + 1).chain(
            self.variables
                .iter()
                .map(|(name, value)| name.len() + value.len() + 2),
        );
        let (mut longest, mut total) = (0, 0);
        for length in lengths {
            longest = longest.max(length);
            total += length;
        }
        if longest > ARGUMENT_BYTES_MAX {
            Err(CommandError::Argument)
        } else if total > COMMAND_BYTES_MAX {
            Err(CommandError::Bytes)
        } else {
            Ok(())
        }
    }
}

/// The first frame of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Runs a command for as long as the connection lives.
    Exec {
        command: Command,
        terminal: Option<TerminalSize>,
    },
    /// Connects to a port of the box's own loopback and hands the socket over.
    Dial {
        address: Loopback,
        port: u16,
    },
    /// Starts a process that outlives every connection. The host chooses the name.
    Spawn {
        process: ProcessName,
        command: Command,
    },
    /// Takes up a process's streams. An attachment made earlier gets `Displaced`.
    Attach {
        process: ProcessName,
        stdout_from: u64,
        stderr_from: u64,
    },
    List,
    Kill {
        process: ProcessName,
        how: Kill,
    },
    /// Drops the record and the spool of a process that has ended.
    Forget {
        process: ProcessName,
    },
    Ping,
}

/// Which of the two addresses of `lo`: servers that listen on `localhost` may have either.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Loopback {
    V4,
    V6,
}

/// How far a kill goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Kill {
    /// This signal, to the process's whole session. Nothing to do once the process has ended.
    Signal(i32),
    /// SIGKILL to the session, to every descendant, and to everything that carries the process's
    /// name in [`PROCESS_VARIABLE`], again until nothing new turns up. Works after the process has
    /// ended too, for what it left behind.
    Everything,
}

/// What the host may say later on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case", deny_unknown_fields)]
pub enum Message {
    /// For `Exec`: this signal to the command's process group.
    Signal { number: i32 },
    /// For `Attach`: input is complete; `offset` is its length. The pipe is closed once all of it
    /// is written.
    CloseInput { offset: u64 },
    /// For `Attach`: the host has kept everything before `offset`.
    Ack { stream: Stream, offset: u64 },
}

/// What the guest says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    Pong {
        protocol: u32,
    },
    /// Three descriptors, one terminal, or one socket travel beside the first byte of this frame.
    Streams {
        count: u32,
    },
    /// 126 and 127 as a shell has them, then with the reason; 128+n after signal n.
    Exited {
        code: i32,
        failure: Option<String>,
    },
    Started {
        pid: u32,
    },
    Attached(Attached),
    Input(InputState),
    /// All output was sent; the offsets are the lengths of the two streams.
    Ended {
        code: i32,
        stdout_end: u64,
        stderr_end: u64,
    },
    /// Somebody else attached.
    Displaced,
    Processes {
        processes: Vec<ProcessInfo>,
    },
    Done,
    Refused {
        why: Refusal,
        text: String,
    },
}

/// Where an attachment begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    pub input: InputState,
    /// First offset that will be sent: what was asked, or later when that was acknowledged before.
    pub stdout_from: u64,
    pub stderr_from: u64,
    pub running: bool,
}

/// How far input has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputState {
    /// Every byte before this one is taken.
    pub taken: u64,
    /// Input may be sent up to this offset. It never shrinks.
    pub window: u64,
    /// The process reads no more (it closed its input, or ended, or the host closed it); what is
    /// sent still counts as taken and goes nowhere.
    pub closed: bool,
}

/// A durable process as the guest sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessInfo {
    pub process: ProcessName,
    /// Inside the box.
    pub pid: u32,
    /// Absent while it runs.
    pub code: Option<i32>,
    pub attached: bool,
    pub input: InputState,
    pub stdout: Kept,
    pub stderr: Kept,
}

/// Output the guest holds: offsets `start..end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    pub start: u64,
    pub end: u64,
}

/// A stream of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    Stdin,
    Stdout,
    Stderr,
}

/// Why the guest did not do what it was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// No process of that name.
    NotFound,
    /// A process of that name is there already.
    Exists,
    /// The process still runs.
    Running,
    /// A limit of the guest or of the box is reached.
    Limit,
    /// Nothing listens at the port.
    NobodyListens,
    /// The program is not there (a shell's 127).
    NoProgram,
    /// The program or its folder cannot be used (a shell's 126).
    CannotRun,
    /// An offset that fits nothing.
    Offset,
    /// A frame the guest does not understand, or one out of place.
    Malformed,
    /// The guest itself failed; the text says at what.
    Failed,
}

#[cfg(test)]
mod tests;
