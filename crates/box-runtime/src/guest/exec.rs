//! A command that lives as long as somebody waits for it.

use super::connection::{Connection, parse_reply};
use super::{GuestError, command_of, unexpected};
use crate::{ExecSpec, Execution, RunningProcess, RuntimeError};
use async_trait::async_trait;
use box_api::guest::{FrameKind, Message, Reply, Request};
use rustix::fs::{FileType, OFlags};
use std::os::fd::{AsFd as _, OwnedFd};
use tokio::sync::{mpsc, watch};

/// Signals on their way to a command.
const SIGNALS_MAX: usize = 8;
/// Code of a command whose box went away under it: SIGKILL, which is what happened to it.
const CODE_KILLED: i32 = 128 + 9;

/// Runs a command in the box. Its streams are the process's own pipes or its terminal, so what
/// goes through them never passes the guest or this program. The folder defaults to the workspace.
///
/// # Errors
/// [`GuestError::Refused`] when the command could not be tried. One that was tried and is not
/// there, or not a program, ends with 127 or 126 and the reason on its stderr.
pub async fn exec(conn: OwnedFd, spec: ExecSpec) -> Result<Execution, GuestError> {
    let terminal = spec.terminal;
    let request = Request::Exec {
        command: command_of(spec)?,
        terminal,
    };
    let mut conn = Connection::new(conn)?;
    conn.send(FrameKind::Request, &request).await?;
    let reply = conn.reply_in_time().await?;
    let Reply::Streams { count } = reply else {
        return Err(unexpected(&reply));
    };
    let streams = conn.take_descriptors();
    if streams.len() != count as usize {
        return Err(GuestError::protocol("descriptors got lost on the way"));
    }
    match terminal {
        Some(_) => check_terminal(&streams)?,
        None => check_pipes(&streams)?,
    }
    let (signals, signals_to_send) = mpsc::channel(SIGNALS_MAX);
    let (code, ended) = watch::channel(None);
    tokio::spawn(run(conn, signals_to_send, code));
    Ok(Execution {
        streams,
        process: Box::new(Running { signals, ended }),
    })
}

/// The command's end as far as it is known: its code, or what became of its box.
type Ended = Option<Result<i32, String>>;

#[derive(Debug)]
struct Running {
    /// Closing this channel closes the connection, and the guest kills the command.
    signals: mpsc::Sender<i32>,
    ended: watch::Receiver<Ended>,
}

#[async_trait]
impl RunningProcess for Running {
    async fn signal(&self, number: i32) -> Result<(), RuntimeError> {
        // A command that has ended takes no signal, and nobody misses it.
        self.signals.send(number).await.or(Ok(()))
    }

    async fn wait(&self) -> Result<i32, RuntimeError> {
        let mut ended = self.ended.clone();
        let end = match ended.wait_for(Option::is_some).await {
            Ok(end) => end.clone(),
            Err(_) => None,
        };
        match end {
            Some(Ok(code)) => Ok(code),
            Some(Err(why)) => Err(RuntimeError::engine("wait for the command", why)),
            None => Ok(CODE_KILLED),
        }
    }
}

/// Owns the connection until the command ends or nobody wants it any more.
async fn run(mut conn: Connection, mut signals: mpsc::Receiver<i32>, ended: watch::Sender<Ended>) {
    let end = loop {
        tokio::select! {
            signal = signals.recv() => match signal {
                Some(number) => {
                    if let Err(error) = conn.send(FrameKind::Message, &Message::Signal { number }).await {
                        break Err(error.to_string());
                    }
                }
                None => return,
            },
            frame = conn.next_frame() => break exit_of(frame),
        }
    };
    ended.send_replace(Some(end));
}

fn exit_of(frame: Result<Option<box_api::guest::Frame>, GuestError>) -> Result<i32, String> {
    let Some(frame) = frame.map_err(|error| error.to_string())? else {
        return Ok(CODE_KILLED);
    };
    let reply = parse_reply(&frame).map_err(|error| error.to_string())?;
    let Reply::Exited {
        code: code @ 0..=255,
        ..
    } = reply
    else {
        return Err(unexpected(&reply).to_string());
    };
    Ok(code)
}

/// A guest gone bad could hand over anything; only pipes in the right direction are taken.
fn check_pipes(streams: &[OwnedFd]) -> Result<(), GuestError> {
    let wanted = [OFlags::WRONLY, OFlags::RDONLY, OFlags::RDONLY];
    let right = streams.len() == wanted.len()
        && streams.iter().zip(wanted).all(|(fd, direction)| {
            file_type(fd) == Some(FileType::Fifo)
                && rustix::fs::fcntl_getfl(fd)
                    .is_ok_and(|flags| flags & OFlags::ACCMODE == direction)
        });
    if right {
        Ok(())
    } else {
        Err(GuestError::protocol("streams that are not three pipes"))
    }
}

fn check_terminal(streams: &[OwnedFd]) -> Result<(), GuestError> {
    let right = match streams {
        [fd] => file_type(fd) == Some(FileType::CharacterDevice) && rustix::termios::isatty(fd),
        _ => false,
    };
    if right {
        Ok(())
    } else {
        Err(GuestError::protocol("a stream that is not one terminal"))
    }
}

fn file_type(fd: &OwnedFd) -> Option<FileType> {
    let stat = rustix::fs::fstat(fd.as_fd()).ok()?;
    Some(FileType::from_raw_mode(stat.st_mode))
}
