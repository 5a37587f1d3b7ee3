//! Speaks with box-guest, pid 1 of a box: commands, durable processes and their streams.
//!
//! Every function takes a fresh connection ([`crate::Processes::connect`]) and uses it up. What
//! the guest says is not trusted: frames and texts are bounded, offsets must follow each other,
//! descriptors must be what they claim to be, and an answer that does not come in time is an error.

mod attach;
mod connection;
mod dial;
mod exec;

pub use attach::{
    AckSender, Attachment, Event, EventReceiver, INPUT_BYTES_MAX, InputSender, Offsets, attach,
};
pub use box_api::guest::{
    Attached, Command, CommandError, InputState, Kept, Kill, Loopback, ProcessInfo, ProcessName,
    Refusal, Stream,
};
pub use dial::dial;
pub use exec::exec;

use crate::{ExecSpec, RuntimeError};
use box_api::guest::{FrameKind, PROCESSES_MAX, ProtocolError, Reply, Request, WORKSPACE};
use connection::Connection;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// How long the guest may take for an answer, or for reading what we send.
pub const ANSWER_WAIT: Duration = Duration::from_secs(10);

/// Why the guest of a box did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    #[error("could not speak with the box's guest")]
    Connection(#[source] std::io::Error),
    #[error("the box's guest did not answer in {} s", ANSWER_WAIT.as_secs())]
    Late,
    /// Its socket closed before the last reply: the box stopped, or its guest broke off.
    #[error("the box's guest is gone")]
    Gone,
    #[error("the box's guest broke the protocol: {0}")]
    Protocol(String),
    #[error("the command cannot be sent to the box: {0}")]
    Command(#[from] CommandError),
    /// The guest said no; the text is its own, shortened and without control characters.
    #[error("{text}")]
    Refused { why: Refusal, text: String },
    #[error("input for offset {got} where offset {wanted} is next")]
    InputGap { wanted: u64, got: u64 },
    #[error("input of {0} bytes at once is more than {INPUT_BYTES_MAX}")]
    InputTooLong(usize),
}

impl GuestError {
    fn protocol(what: &str) -> Self {
        Self::Protocol(what.to_owned())
    }
}

impl From<ProtocolError> for GuestError {
    fn from(error: ProtocolError) -> Self {
        Self::Protocol(error.to_string())
    }
}

impl From<GuestError> for RuntimeError {
    fn from(error: GuestError) -> Self {
        match error {
            GuestError::Refused { text, .. } => Self::Refused {
                why: text,
                hint: None,
            },
            GuestError::Command(why) => Self::Refused {
                why: why.to_string(),
                hint: None,
            },
            GuestError::Connection(_)
            | GuestError::Late
            | GuestError::Gone
            | GuestError::Protocol(_)
            | GuestError::InputGap { .. }
            | GuestError::InputTooLong(_) => Self::engine("reach the processes of the box", error),
        }
    }
}

/// Asks whether the guest is there; gives the version of the protocol it speaks.
pub async fn ping(conn: OwnedFd) -> Result<u32, GuestError> {
    let reply = ask(conn, &Request::Ping).await?;
    let Reply::Pong { protocol } = reply else {
        return Err(unexpected(&reply));
    };
    Ok(protocol)
}

/// Starts a process that outlives this connection and this host. Gives its pid inside the box.
///
/// # Errors
/// [`GuestError::Refused`] with [`Refusal::Exists`] for a name in use, [`Refusal::NoProgram`] and
/// [`Refusal::CannotRun`] when nothing was started, [`Refusal::Limit`] at a limit.
pub async fn spawn(
    conn: OwnedFd,
    process: &ProcessName,
    command: Command,
) -> Result<u32, GuestError> {
    command.check()?;
    let request = Request::Spawn {
        process: process.clone(),
        command,
    };
    let reply = ask(conn, &request).await?;
    let Reply::Started { pid } = reply else {
        return Err(unexpected(&reply));
    };
    Ok(pid)
}

/// Every durable process of the box, ended ones not yet forgotten included.
pub async fn list(conn: OwnedFd) -> Result<Vec<ProcessInfo>, GuestError> {
    let reply = ask(conn, &Request::List).await?;
    let Reply::Processes { processes } = reply else {
        return Err(unexpected(&reply));
    };
    if processes.len() > PROCESSES_MAX {
        return Err(GuestError::protocol("more processes than there can be"));
    }
    Ok(processes)
}

/// Kills a process as far as `how` says. Its record and its output stay until [`forget`].
///
/// # Errors
/// [`GuestError::Refused`] with [`Refusal::NotFound`] for a name the guest does not know.
pub async fn kill(conn: OwnedFd, process: &ProcessName, how: Kill) -> Result<(), GuestError> {
    done(
        conn,
        &Request::Kill {
            process: process.clone(),
            how,
        },
    )
    .await
}

/// Drops the record and the kept output of a process that has ended.
///
/// # Errors
/// [`GuestError::Refused`] with [`Refusal::Running`] or [`Refusal::NotFound`].
pub async fn forget(conn: OwnedFd, process: &ProcessName) -> Result<(), GuestError> {
    done(
        conn,
        &Request::Forget {
            process: process.clone(),
        },
    )
    .await
}

/// The command of an [`ExecSpec`] as the guest wants it.
///
/// # Errors
/// [`CommandError`] when it breaks a limit.
pub fn command_of(spec: ExecSpec) -> Result<Command, CommandError> {
    let command = Command {
        arguments: spec.command,
        folder: spec.cwd.unwrap_or_else(|| WORKSPACE.to_owned()),
        variables: spec.env,
    };
    command.check()?;
    Ok(command)
}

async fn done(conn: OwnedFd, request: &Request) -> Result<(), GuestError> {
    let reply = ask(conn, request).await?;
    let Reply::Done = reply else {
        return Err(unexpected(&reply));
    };
    Ok(())
}

async fn ask(conn: OwnedFd, request: &Request) -> Result<Reply, GuestError> {
    let mut conn = Connection::new(conn)?;
    conn.send(FrameKind::Request, request).await?;
    conn.reply_in_time().await
}

fn unexpected(reply: &Reply) -> GuestError {
    // Only the name of the reply: its content is the guest's.
    let shown = format!("{reply:?}");
    let name = shown.split([' ', '(', '{']).next().unwrap_or_default();
    GuestError::Protocol(format!("`{name}` where another reply belongs"))
}

#[cfg(test)]
mod tests;
