//! A command that lives as long as its connection.

use crate::connection::{Connection, Operation};
use crate::kill;
use crate::launch::{ChildStreams, Failure, Launched, Launcher, Refused, Starting};
use crate::system::signal_group;
use crate::terminal;
use box_api::control::TerminalSize;
use box_api::guest::{Command, Reply};
use rustix::pipe::{PipeFlags, pipe_with};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Instant;

/// A forked command as long as its end was not told.
#[derive(Debug)]
pub(crate) struct Running {
    /// Absent once reaped: from then on the number may be somebody else's.
    pid: Option<i32>,
    /// Absent once it is known whether the program runs.
    starting: Option<Starting>,
    failure: Option<Failure>,
    code: Option<i32>,
}

/// Starts a command and sends its streams to the host; the guest keeps no end of them.
pub(crate) fn exec(
    connection: &mut Connection,
    launcher: &Launcher,
    command: Command,
    terminal: Option<TerminalSize>,
) -> Result<(), Refused> {
    let (host_ends, child_ends) = match terminal {
        Some(size) => {
            let (outer, inner) = terminal::open(size, launcher.user())?;
            (vec![outer], ChildStreams::Terminal(inner))
        }
        None => pipes().map_err(|error| Refused::failed("open pipes", error))?,
    };
    let Launched { pid, starting } = launcher.launch(command, None, &child_ends)?;
    let running = Running {
        pid: Some(pid),
        starting: Some(starting),
        failure: None,
        code: None,
    };
    connection.operation = Operation::Exec(running);
    if connection.wire.send_streams(&host_ends).is_err() {
        // The connection is closed next, which kills the command.
        return Err(Refused::new(
            box_api::guest::Refusal::Failed,
            "could not hand over the streams of the command",
        ));
    }
    Ok(())
}

fn pipes() -> Result<(Vec<OwnedFd>, ChildStreams), rustix::io::Errno> {
    let (stdin, stdin_host) = pipe_with(PipeFlags::CLOEXEC)?;
    let (stdout_host, stdout) = pipe_with(PipeFlags::CLOEXEC)?;
    let (stderr_host, stderr) = pipe_with(PipeFlags::CLOEXEC)?;
    let host_ends = vec![stdin_host, stdout_host, stderr_host];
    Ok((
        host_ends,
        ChildStreams::Pipes {
            stdin,
            stdout,
            stderr,
        },
    ))
}

impl Running {
    pub(crate) fn pid(&self) -> Option<i32> {
        self.pid
    }

    pub(crate) fn starting_fd(&self) -> Option<BorrowedFd<'_>> {
        self.starting.as_ref().map(Starting::as_fd)
    }

    /// Looks whether the program runs by now.
    pub(crate) fn look(&mut self) {
        if let Some(outcome) = self.starting.as_ref().and_then(Starting::outcome) {
            self.starting = None;
            self.failure = outcome.err();
        }
    }

    pub(crate) fn reaped(&mut self, code: i32) {
        self.pid = None;
        self.code = Some(code);
        self.look();
    }

    /// What to tell the host, once everything is known.
    pub(crate) fn exited(&mut self) -> Option<Reply> {
        let code = self.code?;
        let failure = self.failure.take();
        let code = failure.as_ref().map_or(code, |failure| failure.code);
        Some(Reply::Exited {
            code,
            failure: failure.map(|failure| failure.text),
        })
    }

    /// A signal to its process group.
    pub(crate) fn signal(&self, number: i32) {
        // One that does not exist, or comes as the command ends, changes nothing.
        if let Some(pid) = self.pid {
            let _ = signal_group(pid, number);
        }
    }

    /// Its connection is gone, so its whole session goes.
    pub(crate) fn kill(&self) {
        if let Some(pid) = self.pid {
            // Nobody is left to be told that this did not work.
            drop(kill::session(pid, libc::SIGKILL));
        }
    }
}

/// The program runs by now, or could not.
pub(crate) fn look_at_start(connection: &mut Connection, now: Instant) {
    if let Operation::Exec(running) = &mut connection.operation {
        running.look();
    }
    finish(connection, now);
}

/// Tells the host the end of its command when it is known.
pub(crate) fn finish(connection: &mut Connection, now: Instant) {
    if let Operation::Exec(running) = &mut connection.operation
        && let Some(reply) = running.exited()
    {
        connection.reply_last(&reply, now);
    }
}
