//! Runs a program to its end, with a deadline, and keeps what it said.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use rustix::time::Timespec;
use std::io::{Read, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longer than anything a person would wait for without a word.
const DEADLINE: Duration = Duration::from_mins(2);

/// The `box` under test, or another program.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) command: Command,
    input: Vec<u8>,
    deadline: Duration,
}

/// What it said, and how it ended.
#[derive(Debug, Clone)]
pub(crate) struct Said {
    pub(crate) out: String,
    pub(crate) err: String,
    /// 128+n for a signal.
    pub(crate) code: i32,
    shown: String,
}

impl Program {
    /// `box` with a clean environment.
    pub(crate) fn new(arguments: &[&str]) -> Self {
        Self::other(env!("CARGO_BIN_EXE_box"), arguments)
    }

    pub(crate) fn other(program: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command.env("HOME", "/nonexistent").env("LANG", "C.UTF-8");
        Self {
            command,
            input: Vec::new(),
            deadline: DEADLINE,
        }
    }

    pub(crate) fn input(mut self, input: &[u8]) -> Self {
        self.input = input.to_vec();
        self
    }

    pub(crate) fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Runs it to its end. A program that does not end fails the test.
    pub(crate) fn run(self) -> Said {
        let deadline = self.deadline;
        self.start().finish(deadline)
    }

    /// Runs it beside the test.
    pub(crate) fn start(mut self) -> Running {
        self.command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let shown = format!("{:?}", self.command.get_args().collect::<Vec<_>>());
        let mut child = self.command.spawn().unwrap();
        let pidfd = pidfd(&child);
        let mut stdin = child.stdin.take().unwrap();
        let input = std::mem::take(&mut self.input);
        // Whoever does not read its input may go without it.
        let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let out = collect(child.stdout.take().unwrap());
        let err = collect(child.stderr.take().unwrap());
        Running {
            child,
            pidfd,
            shown,
            writer,
            out,
            err,
        }
    }
}

/// A program that runs.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    pidfd: OwnedFd,
    shown: String,
    writer: JoinHandle<()>,
    out: JoinHandle<String>,
    err: JoinHandle<String>,
}

impl Running {
    /// Kills it, and returns once it is gone.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn finish(mut self, deadline: Duration) -> Said {
        let in_time = ends_within(&self.pidfd, deadline);
        if !in_time {
            let _gone = pidfd_send_signal(&self.pidfd, Signal::KILL);
        }
        let status = self.child.wait().unwrap();
        self.writer.join().unwrap();
        let (out, err) = (self.out.join().unwrap(), self.err.join().unwrap());
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        let code = status.code().or(signal.map(|signal| 128 + signal)).unwrap();
        let said = Said {
            out,
            err,
            code,
            shown: self.shown,
        };
        assert!(in_time, "not over after {deadline:?}: {said}");
        said
    }
}

impl Said {
    /// Standard error without the lines that only tell how far it is.
    pub(crate) fn told(&self) -> String {
        let lines = self.err.lines().filter(|line| !line.starts_with("· "));
        lines.collect::<Vec<_>>().join("\n")
    }

    #[track_caller]
    pub(crate) fn assert_code(&self, code: i32) {
        assert_eq!(self.code, code, "{self}");
    }
}

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            out,
            err,
            code,
            shown,
        } = self;
        write!(
            f,
            "{shown} ended with {code}\n--- out\n{out}\n--- err\n{err}"
        )
    }
}

pub(crate) fn pidfd(child: &Child) -> OwnedFd {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    pidfd_open(pid, PidfdFlags::empty()).unwrap()
}

/// Whether a process ends in time.
pub(crate) fn ends_within(pidfd: &OwnedFd, deadline: Duration) -> bool {
    let wait = Timespec::try_from(deadline).unwrap();
    let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
    poll(&mut fds, Some(&wait)).unwrap() > 0
}

fn collect(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // A pipe that breaks has said what it had to say.
        let _end = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
