//! A durable process: its pipes, its spooled output, its queued input.

use crate::kill;
use crate::launch::{ChildStreams, Launched, Launcher, Refused, Starting};
use crate::spool::Spool;
use crate::system::set_nonblocking;
use box_api::guest::{
    Command, INPUT_QUEUE_BYTES_MAX, InputState, Kill, ProcessInfo, ProcessName, Refusal,
};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use std::collections::VecDeque;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) name: ProcessName,
    pub(crate) pid: i32,
    pub(crate) life: Life,
    pub(crate) input: Input,
    pub(crate) stdout: Output,
    pub(crate) stderr: Output,
    /// The connection that has its streams.
    pub(crate) attached: Option<u64>,
}

#[derive(Debug)]
pub(crate) enum Life {
    /// Forked for this connection; whether its program runs is not known yet.
    Starting {
        starting: Starting,
        asker: u64,
    },
    Running,
    Ended {
        code: i32,
    },
}

impl Process {
    pub(crate) fn spawn(
        launcher: &Launcher,
        name: ProcessName,
        command: Command,
        asker: u64,
    ) -> Result<Self, Refused> {
        let failed = |error| Refused::failed("open pipes", error);
        let (stdin, to_stdin) = pipe_with(PipeFlags::CLOEXEC).map_err(failed)?;
        let (from_stdout, stdout) = pipe_with(PipeFlags::CLOEXEC).map_err(failed)?;
        let (from_stderr, stderr) = pipe_with(PipeFlags::CLOEXEC).map_err(failed)?;
        // Only our ends: each end of a pipe has flags of its own (pipe(7)).
        for end in [&to_stdin, &from_stdout, &from_stderr] {
            set_nonblocking(end).map_err(failed)?;
        }
        let streams = ChildStreams::Pipes {
            stdin,
            stdout,
            stderr,
        };
        let Launched { pid, starting } = launcher.launch(command, Some(&name), &streams)?;
        Ok(Self {
            name,
            pid,
            life: Life::Starting { starting, asker },
            input: Input {
                pipe: Some(to_stdin),
                queue: VecDeque::new(),
                taken: 0,
                ending: false,
            },
            stdout: Output::new(from_stdout),
            stderr: Output::new(from_stderr),
            attached: None,
        })
    }

    pub(crate) fn is_running(&self) -> bool {
        !matches!(self.life, Life::Ended { .. })
    }

    /// The code, once the process has ended and all its output is in the spool.
    pub(crate) fn end(&self) -> Option<i32> {
        match self.life {
            Life::Ended { code } if self.stdout.is_over() && self.stderr.is_over() => Some(code),
            Life::Starting { .. } | Life::Running | Life::Ended { .. } => None,
        }
    }

    pub(crate) fn reaped(&mut self, code: i32) {
        self.life = Life::Ended { code };
        self.input.close();
        self.stdout.process_ended();
        self.stderr.process_ended();
    }

    pub(crate) fn kill(&self, how: Kill) -> Result<(), Refused> {
        match how {
            Kill::Signal(number) if self.is_running() => kill::session(self.pid, number),
            Kill::Signal(_) => Ok(()),
            // After its end the pid may be somebody else's.
            Kill::Everything => kill::everything(&self.name, self.is_running().then_some(self.pid)),
        }
    }

    pub(crate) fn info(&self) -> ProcessInfo {
        ProcessInfo {
            process: self.name.clone(),
            pid: u32::try_from(self.pid).unwrap_or_default(),
            code: match self.life {
                Life::Ended { code } => Some(code),
                Life::Starting { .. } | Life::Running => None,
            },
            attached: self.attached.is_some(),
            input: self.input.state(),
            stdout: self.stdout.spool.kept(),
            stderr: self.stderr.spool.kept(),
        }
    }
}

/// Input on its way to the process.
#[derive(Debug)]
pub(crate) struct Input {
    /// Absent once nobody reads.
    pipe: Option<OwnedFd>,
    queue: VecDeque<u8>,
    /// Every byte before this offset was queued, written or thrown away.
    taken: u64,
    /// The host said that nothing follows.
    ending: bool,
}

impl Input {
    pub(crate) fn state(&self) -> InputState {
        let room = INPUT_QUEUE_BYTES_MAX - self.queue.len();
        InputState {
            taken: self.taken,
            window: self.taken + room as u64,
            closed: self.ending || self.pipe.is_none(),
        }
    }

    /// Takes what is new of `bytes`, which begin at `offset`.
    pub(crate) fn offer(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Refused> {
        let end = offset.saturating_add(bytes.len() as u64);
        if offset > self.taken || end > self.state().window {
            return Err(Refused::new(
                Refusal::Offset,
                format!("input {offset}..{end} does not fit after {}", self.taken),
            ));
        }
        let known = usize::try_from(self.taken - offset).unwrap_or(usize::MAX);
        let Some(new) = bytes.get(known..).filter(|new| !new.is_empty()) else {
            return Ok(());
        };
        self.taken = end;
        if !self.state().closed {
            self.queue.extend(new);
            self.write();
        }
        Ok(())
    }

    /// Nothing follows; the pipe is closed when everything is written.
    pub(crate) fn end_at(&mut self, offset: u64) -> Result<(), Refused> {
        if offset != self.taken {
            return Err(Refused::new(
                Refusal::Offset,
                format!(
                    "input cannot end at {offset}: {} bytes are taken",
                    self.taken
                ),
            ));
        }
        self.ending = true;
        self.write();
        Ok(())
    }

    /// The pipe, while something waits to be written.
    pub(crate) fn fd_to_watch(&self) -> Option<BorrowedFd<'_>> {
        self.pipe
            .as_ref()
            .filter(|_| !self.queue.is_empty())
            .map(|pipe| pipe.as_fd())
    }

    /// Writes as much as the pipe takes.
    pub(crate) fn write(&mut self) {
        while let Some(pipe) = &self.pipe {
            let next = self.queue.as_slices().0;
            if next.is_empty() {
                break;
            }
            match rustix::io::write(pipe, next) {
                Ok(count) => drop(self.queue.drain(..count)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => return self.close(),
            }
        }
        self.queue = VecDeque::new();
        if self.ending {
            self.close();
        }
    }

    fn close(&mut self) {
        self.pipe = None;
        self.queue = VecDeque::new();
    }
}

/// Output of one stream on its way from the process.
#[derive(Debug)]
pub(crate) struct Output {
    /// Absent once everything is in the spool.
    pipe: Option<OwnedFd>,
    pub(crate) spool: Spool,
    /// What was still in the pipe when the process ended. What others write later, who have the
    /// pipe from it, is not its output.
    left: Option<u64>,
}

impl Output {
    fn new(pipe: OwnedFd) -> Self {
        Self {
            pipe: Some(pipe),
            spool: Spool::default(),
            left: None,
        }
    }

    fn is_over(&self) -> bool {
        self.pipe.is_none()
    }

    /// The pipe, while there is room for what comes out of it.
    pub(crate) fn fd_to_watch(&self) -> Option<BorrowedFd<'_>> {
        self.pipe
            .as_ref()
            .filter(|_| self.spool.room() > 0)
            .map(|pipe| pipe.as_fd())
    }

    /// Reads once.
    pub(crate) fn read(&mut self, scratch: &mut [u8]) {
        let Some(pipe) = &self.pipe else { return };
        let left = self
            .left
            .and_then(|left| usize::try_from(left).ok())
            .unwrap_or(usize::MAX);
        let count = scratch.len().min(self.spool.room()).min(left);
        match rustix::io::read(pipe, &mut scratch[..count]) {
            Ok(0) => self.pipe = None,
            Ok(count) => {
                self.spool.push(&scratch[..count]);
                self.left = self.left.map(|left| left.saturating_sub(count as u64));
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if self.left.is_none() => {}
            Err(_) => self.pipe = None,
        }
        if self.left == Some(0) {
            self.pipe = None;
        }
    }

    fn process_ended(&mut self) {
        let Some(pipe) = &self.pipe else { return };
        // Bytes in the pipe now (pipe(7), FIONREAD); everything the process wrote is among them.
        let left = rustix::io::ioctl_fionread(pipe).unwrap_or(0);
        self.left = Some(left);
        if left == 0 {
            self.pipe = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Input;
    use box_api::guest::INPUT_QUEUE_BYTES_MAX;
    use rustix::pipe::{PipeFlags, pipe_with};
    use std::collections::VecDeque;
    use std::os::fd::OwnedFd;

    fn input() -> (OwnedFd, Input) {
        let (reader, writer) = pipe_with(PipeFlags::NONBLOCK).unwrap();
        let input = Input {
            pipe: Some(writer),
            queue: VecDeque::new(),
            taken: 0,
            ending: false,
        };
        (reader, input)
    }

    fn read(reader: &OwnedFd) -> Vec<u8> {
        let mut bytes = vec![0; 1 << 20];
        let count = rustix::io::read(reader, &mut bytes).unwrap();
        bytes.truncate(count);
        bytes
    }

    #[test]
    fn input_sent_again_is_taken_once() {
        let (reader, mut input) = input();
        input.offer(0, b"hello").unwrap();
        input.offer(0, b"hello").unwrap();
        input.offer(3, b"lo, box").unwrap();
        assert_eq!(read(&reader), b"hello, box");
        assert_eq!(input.state().taken, 10);
    }

    #[test]
    fn a_gap_and_more_than_the_window_are_refused() {
        let (_reader, mut input) = input();
        assert!(input.offer(1, b"x").is_err());
        let full = vec![7; INPUT_QUEUE_BYTES_MAX];
        input.offer(0, &full).unwrap();
        // The pipe took its part of it, so the window has moved on by that much.
        let state = input.state();
        assert!(state.window > state.taken);
        input
            .offer(
                state.taken,
                &vec![7; usize::try_from(state.window - state.taken).unwrap()],
            )
            .unwrap();
        assert!(input.offer(input.state().taken, b"x").is_err());
    }

    #[test]
    fn input_ends_only_where_it_is() {
        let (reader, mut input) = input();
        input.offer(0, b"ab").unwrap();
        assert!(input.end_at(3).is_err());
        input.end_at(2).unwrap();
        assert_eq!(read(&reader), b"ab");
        assert_eq!(read(&reader), b"");
        assert!(input.state().closed);
    }

    #[test]
    fn input_nobody_reads_is_taken_and_thrown_away() {
        let (reader, mut input) = input();
        drop(reader);
        input.offer(0, b"ab").unwrap();
        input.offer(2, b"cd").unwrap();
        assert_eq!((input.state().taken, input.state().closed), (4, true));
    }
}
