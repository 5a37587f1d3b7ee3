//! The `box` under test as a process: without a terminal.

use super::fake_host::DEADLINE;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io::{Read, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub(crate) struct Program {
    pub(crate) command: Command,
    input: Vec<u8>,
}

/// What it said, and how it ended.
#[derive(Debug, Clone)]
pub(crate) struct Said {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) code: i32,
}

impl Program {
    /// With a clean environment and nothing to read.
    pub(crate) fn new(arguments: &[&str]) -> Self {
        Self::other(env!("CARGO_BIN_EXE_box"), arguments)
    }

    /// Another program, such as a copy of ours.
    pub(crate) fn other(program: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", "/nonexistent");
        Self {
            command,
            input: Vec::new(),
        }
    }

    pub(crate) fn input(mut self, input: &[u8]) -> Self {
        self.input = input.to_vec();
        self
    }

    #[track_caller]
    pub(crate) fn run(self) -> Said {
        self.start().finish()
    }

    pub(crate) fn start(mut self) -> Running {
        self.command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = self.command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = std::mem::take(&mut self.input);
        // Whoever does not read its input may go without it.
        std::thread::spawn(move || drop(stdin.write_all(&input)));
        let (out, err) = (
            Collected::of(child.stdout.take().unwrap()),
            Collected::of(child.stderr.take().unwrap()),
        );
        let pidfd = pidfd(&child);
        Running {
            child,
            pidfd,
            out,
            err,
        }
    }
}

/// A program that runs beside the test.
pub(crate) struct Running {
    child: Child,
    pidfd: OwnedFd,
    out: Collected,
    err: Collected,
}

impl Running {
    pub(crate) fn signal(&self, signal: Signal) {
        pidfd_send_signal(&self.pidfd, signal).unwrap();
    }

    /// Waits until standard error has this in it.
    #[track_caller]
    pub(crate) fn wait_for_err(&mut self, text: &str) {
        self.err.wait_for(text);
    }

    /// Waits until standard output has this in it.
    #[track_caller]
    pub(crate) fn wait_for_out(&mut self, text: &str) {
        self.out.wait_for(text);
    }

    #[track_caller]
    pub(crate) fn finish(mut self) -> Said {
        let in_time = ends_within(&self.pidfd, DEADLINE);
        if !in_time {
            self.signal(Signal::KILL);
        }
        let status = self.child.wait().unwrap();
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        let code = status.code().or(signal.map(|signal| 128 + signal)).unwrap();
        let said = Said {
            out: self.out.rest(),
            err: self.err.rest(),
            code,
        };
        assert!(in_time, "did not end: {said:#?}");
        said
    }
}

impl Said {
    #[track_caller]
    pub(crate) fn assert_code(&self, code: i32) -> &Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    /// Everything in one text, for a snapshot.
    pub(crate) fn whole(&self) -> String {
        let Self { out, err, code } = self;
        let mut text = format!("exit {code}\n");
        for (name, stream) in [("out", out), ("err", err)] {
            if !stream.is_empty() {
                text += &["--- ", name, "\n", stream].concat();
            }
        }
        text
    }
}

/// A stream that is read as it comes.
struct Collected {
    text: String,
    more: Receiver<Vec<u8>>,
    reader: Option<JoinHandle<()>>,
}

impl Collected {
    fn of(mut from: impl Read + Send + 'static) -> Self {
        let (say, more) = sync_channel(1 << 16);
        let reader = std::thread::spawn(move || {
            let mut piece = [0; 8192];
            while let Ok(count @ 1..) = from.read(&mut piece)
                && say.send(piece[..count].to_vec()).is_ok()
            {}
        });
        Self {
            text: String::new(),
            more,
            reader: Some(reader),
        }
    }

    #[track_caller]
    fn wait_for(&mut self, text: &str) {
        let deadline = Instant::now() + DEADLINE;
        while !self.text.contains(text) {
            let left = deadline.saturating_duration_since(Instant::now());
            let piece = self.more.recv_timeout(left);
            let piece = piece.unwrap_or_else(|_| panic!("no {text:?} in {:?}", self.text));
            self.text.push_str(&String::from_utf8_lossy(&piece));
        }
    }

    fn rest(&mut self) -> String {
        self.reader.take().unwrap().join().unwrap();
        for piece in self.more.try_iter() {
            self.text.push_str(&String::from_utf8_lossy(&piece));
        }
        std::mem::take(&mut self.text)
    }
}

pub(crate) fn pidfd(child: &Child) -> OwnedFd {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    pidfd_open(pid, PidfdFlags::empty()).unwrap()
}

/// Whether a process ends in time.
pub(crate) fn ends_within(pidfd: &OwnedFd, deadline: Duration) -> bool {
    let wait = Timespec::try_from(deadline).unwrap();
    poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&wait)).unwrap() > 0
}
