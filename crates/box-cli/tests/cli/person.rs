//! A person at a terminal: reads what `box` prints there and types.

use super::fake_host::DEADLINE;
use super::program::{Program, ends_within, pidfd};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Instant;

pub(crate) struct Person {
    child: Child,
    pidfd: OwnedFd,
    keyboard: File,
    /// The program's side while it runs, so that its modes can be looked at.
    side: Option<File>,
    as_before: bool,
    screen: Receiver<Vec<u8>>,
    /// Everything printed, as it came.
    pub(crate) seen: String,
    read: usize,
}

impl Person {
    /// Starts the program as the leader of a session on a terminal of 24 rows and 60 columns.
    pub(crate) fn at(program: &Program) -> Self {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        tcsetwinsize(&master, window(24, 60)).unwrap();
        let path = ptsname(&master, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let side = || File::from(rustix::fs::open(&*path, flags, Mode::empty()).unwrap());
        let mut leader = Command::new("/usr/bin/setsid");
        leader
            .arg("--ctty")
            .arg(program.command.get_program())
            .args(program.command.get_args());
        leader.env_clear();
        leader.envs(
            program
                .command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        if let Some(folder) = program.command.get_current_dir() {
            leader.current_dir(folder);
        }
        leader.stdin(side()).stdout(side()).stderr(side());
        let child = leader.spawn().unwrap();
        drop(leader);
        let pidfd = pidfd(&child);
        let mut reader = File::from(master.try_clone().unwrap());
        let (say, screen) = sync_channel(1 << 16);
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            // EIO: the last process on the terminal is gone (pty(7)).
            while let Ok(count @ 1..) = reader.read(&mut piece)
                && say.send(piece[..count].to_vec()).is_ok()
            {}
        });
        Self {
            child,
            pidfd,
            keyboard: File::from(master),
            side: Some(side()),
            as_before: true,
            screen,
            seen: String::new(),
            read: 0,
        }
    }

    /// Waits until this was printed after what was seen before.
    #[track_caller]
    pub(crate) fn sees(&mut self, text: &str) -> &mut Self {
        let deadline = Instant::now() + DEADLINE;
        loop {
            if let Some(at) = self.seen[self.read..].find(text) {
                self.read += at + text.len();
                return self;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let piece = self.screen.recv_timeout(left);
            let piece =
                piece.unwrap_or_else(|_| panic!("no {text:?} on the terminal:\n{}", self.seen));
            self.seen.push_str(&String::from_utf8_lossy(&piece));
        }
    }

    pub(crate) fn types(&mut self, text: &str) -> &mut Self {
        self.keyboard.write_all(text.as_bytes()).unwrap();
        self
    }

    pub(crate) fn resizes(&mut self, rows: u16, columns: u16) {
        tcsetwinsize(&self.keyboard, window(rows, columns)).unwrap();
    }

    /// Whether the terminal shows what is typed and waits for whole lines.
    pub(crate) fn terminal_is_as_before(&self) -> bool {
        let usual = LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        let now = self
            .side
            .as_ref()
            .map(|side| tcgetattr(side).unwrap().local_modes.contains(usual));
        now.unwrap_or(self.as_before)
    }

    /// Waits for its end; gives its code.
    #[track_caller]
    pub(crate) fn finish(&mut self) -> i32 {
        assert!(
            ends_within(&self.pidfd, DEADLINE),
            "goes on:\n{}",
            self.seen
        );
        let status = self.child.wait().unwrap();
        self.as_before = self.terminal_is_as_before();
        // With our side closed too, the terminal ends after its last words.
        self.side = None;
        while let Ok(piece) = self.screen.recv_timeout(DEADLINE) {
            self.seen.push_str(&String::from_utf8_lossy(&piece));
        }
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        status.code().or(signal.map(|signal| 128 + signal)).unwrap()
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn window(rows: u16, columns: u16) -> Winsize {
    Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}
