//! A program on a terminal, and a person who reads and types.

use super::program::{ends_within, pidfd};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

/// Interrupts, as typed.
pub(crate) const CTRL_C: &str = "\u{3}";
/// Ends the input, as typed on an empty line.
pub(crate) const CTRL_D: &str = "\u{4}";

#[derive(Debug)]
pub(crate) struct Terminal {
    child: Child,
    pidfd: OwnedFd,
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    /// All that was printed, escapes left out.
    pub(crate) seen: String,
    /// How much of it `expect` has gone past.
    read: usize,
}

impl Terminal {
    /// Runs the command as the leader of a session whose terminal this is.
    pub(crate) fn start(command: &Command) -> Self {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let path = ptsname(&master, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let side = || File::from(rustix::fs::open(&*path, flags, Mode::empty()).unwrap());
        let mut leader = Command::new("setsid");
        leader
            .arg("--ctty")
            .arg(command.get_program())
            .args(command.get_args());
        leader.env_clear().env("TERM", "dumb");
        leader.envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        leader.stdin(side()).stdout(side()).stderr(side());
        let child = leader.spawn().unwrap();
        drop(leader);
        let pidfd = pidfd(&child);
        let mut reader = File::from(master.try_clone().unwrap());
        let (say, screen) = sync_channel(1024);
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            // EIO: the last process on the terminal is gone (pty(7)).
            while let Ok(count @ 1..) = reader.read(&mut piece)
                && say.send(piece[..count].to_vec()).is_ok()
            {}
        });
        let keyboard = File::from(master);
        Self {
            child,
            pidfd,
            keyboard,
            screen,
            seen: String::new(),
            read: 0,
        }
    }

    /// Waits for `text` after what was expected before; gives all printed up to and with it.
    #[track_caller]
    pub(crate) fn expect(&mut self, text: &str, deadline: Duration) -> String {
        let end = Instant::now() + deadline;
        loop {
            if let Some(place) = self.seen[self.read..].find(text) {
                let upto = self.read + place + text.len();
                let found = self.seen[self.read..upto].to_owned();
                self.read = upto;
                return found;
            }
            match self
                .screen
                .recv_timeout(end.saturating_duration_since(Instant::now()))
            {
                Ok(bytes) => self.seen.push_str(&plain(&bytes)),
                Err(RecvTimeoutError::Timeout) => {
                    panic!(
                        "no {text:?} within {deadline:?} on the terminal:\n{}",
                        self.seen
                    )
                }
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("no {text:?} before the end on the terminal:\n{}", self.seen)
                }
            }
        }
    }

    pub(crate) fn type_in(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    /// Waits for its end; gives its code.
    #[track_caller]
    pub(crate) fn finish(&mut self, deadline: Duration) -> i32 {
        assert!(
            ends_within(&self.pidfd, deadline),
            "goes on after {deadline:?}:\n{}",
            self.seen
        );
        let status = self.child.wait().unwrap();
        while let Ok(bytes) = self.screen.recv_timeout(Duration::from_secs(1)) {
            self.seen.push_str(&plain(&bytes));
        }
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        status.code().or(signal.map(|signal| 128 + signal)).unwrap()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// Text without control sequences (ECMA-48 5.4) and carriage returns.
fn plain(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut plain = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' if chars.next() == Some('[') => {
                let _sequence = chars.find(|c| ('@'..='~').contains(c));
            }
            '\u{1b}' | '\r' => {}
            _ => plain.push(c),
        }
    }
    plain
}
