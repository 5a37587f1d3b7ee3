//! The loop: waits for whatever can go on, lets it go on a little, never waits anywhere else.

use crate::arguments::Arguments;
use crate::command;
use crate::connection::{Connection, Operation};
use crate::launch::Launcher;
use crate::process::{Life, Process};
use crate::request::{Consequence, House, Processes};
use crate::system::{Arrived, Signals, is_pid_1, send_signal, signal_group};
use box_api::guest::{CONNECTIONS_MAX, Reply, Stream};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};
use rustix::process::{WaitOptions, WaitStatus, wait};
use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// What one read takes: a whole pipe.
const SCRATCH_BYTES: usize = 64 << 10;
/// Dead processes collected before anything else gets its turn.
const REAPED_AT_ONCE_MAX: usize = 1024;
/// How long no connection is taken after the kernel had nothing left for one.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Something that can go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Signals,
    Listener,
    Connection(u64),
    /// A command of this connection starts or fails to.
    CommandStart(u64),
    ProcessStart(u32),
    Process(u32, Stream),
}

#[derive(Debug)]
pub(crate) struct Guest {
    listener: OwnedFd,
    signals: Signals,
    house: House,
    connections: BTreeMap<u64, Connection>,
    next_connection: u64,
    accept_from: Option<Instant>,
    /// More children may be dead than were collected.
    reap_again: bool,
    grace: Duration,
    /// When a stop loses its patience.
    stop_at: Option<Instant>,
    children_left: bool,
    scratch: Vec<u8>,
}

impl Guest {
    pub(crate) fn new(arguments: &Arguments, listener: OwnedFd, signals: Signals) -> Self {
        let launcher = Launcher::new(arguments.user);
        Self {
            listener,
            signals,
            house: House {
                launcher,
                processes: Processes::default(),
                stopping: false,
            },
            connections: BTreeMap::new(),
            next_connection: 0,
            accept_from: None,
            reap_again: false,
            grace: arguments.grace,
            stop_at: None,
            children_left: true,
            scratch: vec![0; SCRATCH_BYTES],
        }
    }

    /// Until the box is told to stop.
    pub(crate) fn run(mut self) -> Result<(), String> {
        loop {
            let now = Instant::now();
            let ready = self
                .wait(now)
                .map_err(|error| format!("could not poll: {error}"))?;
            let now = Instant::now();
            if self.reap_again {
                self.reap(now);
            }
            for source in ready {
                self.go_on(source, now);
            }
            self.send(now);
            if self.is_stopped(now) {
                return Ok(());
            }
        }
    }

    /// Waits until something can go on, at most until the next deadline.
    fn wait(&self, now: Instant) -> Result<Vec<Source>, Errno> {
        let watched = self.watched(now);
        let mut fds: Vec<PollFd<'_>> = watched
            .iter()
            .map(|(_, fd, flags)| PollFd::from_borrowed_fd(*fd, *flags))
            .collect();
        let timeout = self
            .next_deadline()
            .map(|at| at.saturating_duration_since(now));
        let timeout = timeout.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR | Errno::AGAIN | Errno::NOMEM) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        }
        let ready = watched
            .iter()
            .zip(&fds)
            .filter(|(_, fd)| !fd.revents().is_empty());
        Ok(ready.map(|((source, _, _), _)| *source).collect())
    }

    fn watched(&self, now: Instant) -> Vec<(Source, BorrowedFd<'_>, PollFlags)> {
        let mut watched = vec![(Source::Signals, self.signals.as_fd(), PollFlags::IN)];
        if self.accepts(now) {
            watched.push((Source::Listener, self.listener.as_fd(), PollFlags::IN));
        }
        for (id, connection) in &self.connections {
            let mut flags = PollFlags::IN;
            flags.set(PollFlags::OUT, connection.wire.wants_to_send());
            watched.push((Source::Connection(*id), connection.wire.as_fd(), flags));
            if let Operation::Exec(running) = &connection.operation
                && let Some(fd) = running.starting_fd()
            {
                watched.push((Source::CommandStart(*id), fd, PollFlags::IN));
            }
        }
        for (key, process) in &self.house.processes.by_key {
            if let Life::Starting { starting, .. } = &process.life {
                watched.push((Source::ProcessStart(*key), starting.as_fd(), PollFlags::IN));
            }
            let streams = [
                (Stream::Stdin, process.input.fd_to_watch(), PollFlags::OUT),
                (Stream::Stdout, process.stdout.fd_to_watch(), PollFlags::IN),
                (Stream::Stderr, process.stderr.fd_to_watch(), PollFlags::IN),
            ];
            let streams = streams.into_iter().filter_map(|(stream, fd, flags)| {
                Some((Source::Process(*key, stream), fd?, flags))
            });
            watched.extend(streams);
        }
        watched
    }

    fn accepts(&self, now: Instant) -> bool {
        let paused = self.accept_from.is_some_and(|from| now < from);
        !paused && self.connections.len() < CONNECTIONS_MAX
    }

    fn next_deadline(&self) -> Option<Instant> {
        let slow = self.connections.values().filter_map(Connection::deadline);
        let reap = self.reap_again.then(Instant::now);
        slow.chain(self.accept_from)
            .chain(self.stop_at)
            .chain(reap)
            .min()
    }

    fn go_on(&mut self, source: Source, now: Instant) {
        match source {
            Source::Signals => self.take_signals(now),
            Source::Listener => self.accept(now),
            Source::Connection(id) => self.receive(id, now),
            Source::CommandStart(id) => {
                if let Some(connection) = self.connections.get_mut(&id) {
                    command::look_at_start(connection, now);
                }
            }
            Source::ProcessStart(key) => self.look_at_start(key, now),
            Source::Process(key, stream) => {
                if let Some(process) = self.house.processes.by_key.get_mut(&key) {
                    match stream {
                        Stream::Stdin => process.input.write(),
                        Stream::Stdout => process.stdout.read(&mut self.scratch),
                        Stream::Stderr => process.stderr.read(&mut self.scratch),
                    }
                }
            }
        }
    }

    fn take_signals(&mut self, now: Instant) {
        while let Some(arrived) = self.signals.take() {
            match arrived {
                Arrived::Child => self.reap_again = true,
                Arrived::Stop => self.begin_stop(now),
                Arrived::Other => {}
            }
        }
        if self.reap_again {
            self.reap(now);
        }
    }

    fn accept(&mut self, now: Instant) {
        self.accept_from = None;
        match accept_with(&self.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            Ok(socket) => {
                self.connections
                    .insert(self.next_connection, Connection::new(socket, now));
                self.next_connection += 1;
            }
            Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS) => {
                self.accept_from = Some(now + ACCEPT_PAUSE);
            }
            // A connection that was there and is not any more.
            Err(_) => {}
        }
    }

    fn receive(&mut self, id: u64, now: Instant) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let gone = connection.wire.receive(&mut self.scratch).is_err();
        loop {
            let Some(connection) = self.connections.get_mut(&id) else {
                return;
            };
            match connection.next_frame() {
                Ok(Some(frame)) => match self.house.frame(id, connection, frame, now) {
                    Consequence::None => {}
                    Consequence::Displaced(other) => {
                        self.end_attachment(other, Some(&Reply::Displaced), now);
                    }
                    Consequence::Over(other) => self.end_attachment(other, None, now),
                },
                Ok(None) => break,
                Err(error) => {
                    self.house.let_go(id, connection);
                    connection.refuse(error.into(), now);
                }
            }
        }
        if gone {
            self.close(id);
        }
    }

    fn end_attachment(&mut self, id: u64, last_word: Option<&Reply>, now: Instant) {
        if let Some(connection) = self.connections.get_mut(&id) {
            if let Some(reply) = last_word {
                connection.wire.reply(reply);
            }
            connection.close_when_sent(now);
        }
    }

    fn close(&mut self, id: u64) {
        if let Some(connection) = self.connections.remove(&id) {
            self.house.let_go(id, &connection);
        }
    }

    /// Whether a durable process came to run; its asker is told.
    fn look_at_start(&mut self, key: u32, now: Instant) {
        let processes = &mut self.house.processes.by_key;
        let Some(process) = processes.get_mut(&key) else {
            return;
        };
        let Life::Starting { starting, asker } = &process.life else {
            return;
        };
        let (Some(outcome), asker) = (starting.outcome(), *asker) else {
            return;
        };
        let connection = self
            .connections
            .get_mut(&asker)
            .filter(|asker| matches!(asker.operation, Operation::Spawning));
        match outcome {
            Ok(()) => {
                process.life = Life::Running;
                let pid = u32::try_from(process.pid).unwrap_or_default();
                if let Some(connection) = connection {
                    connection.reply_last(&Reply::Started { pid }, now);
                }
            }
            Err(failure) => {
                processes.remove(&key);
                if let Some(connection) = connection {
                    connection.refuse(failure.refused(), now);
                }
            }
        }
    }

    /// Collects dead children, ours and those whose parents died before them.
    fn reap(&mut self, now: Instant) {
        self.reap_again = true;
        for _ in 0..REAPED_AT_ONCE_MAX {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => self.reaped(pid.as_raw_pid(), code_of(status), now),
                Ok(None) => {
                    self.children_left = true;
                    self.reap_again = false;
                    return;
                }
                Err(Errno::INTR) => {}
                Err(_) => {
                    self.children_left = false;
                    self.reap_again = false;
                    return;
                }
            }
        }
    }

    fn reaped(&mut self, pid: i32, code: i32, now: Instant) {
        for connection in self.connections.values_mut() {
            if let Operation::Exec(running) = &mut connection.operation
                && running.pid() == Some(pid)
            {
                running.reaped(code);
                command::finish(connection, now);
                return;
            }
        }
        let found = |process: &Process| process.pid == pid && process.is_running();
        let key = self
            .house
            .processes
            .by_key
            .iter()
            .find(|(_, process)| found(process));
        if let Some(key) = key.map(|(key, _)| *key) {
            self.look_at_start(key, now);
            if let Some(process) = self.house.processes.by_key.get_mut(&key) {
                process.reaped(code);
            }
        }
    }

    /// Sends what there is on every connection, and closes those that are through.
    fn send(&mut self, now: Instant) {
        let mut over = Vec::new();
        for (id, connection) in &mut self.connections {
            let sent = if let Operation::Attached(attachment) = &mut connection.operation
                && let Some(process) = self.house.processes.by_key.get(&attachment.process)
            {
                attachment.send(&mut connection.wire, process)
            } else {
                connection.wire.flush()
            };
            if sent.is_err() || connection.is_over(now) {
                over.push(*id);
            }
        }
        for id in over {
            self.close(id);
        }
    }

    fn begin_stop(&mut self, now: Instant) {
        if self.stop_at.is_none() {
            self.stop_at = Some(now + self.grace);
            self.house.stopping = true;
            self.reap_again = true;
            self.signal_all(libc::SIGTERM);
        }
    }

    /// As pid 1 the whole box, else what was started here.
    fn signal_all(&self, number: i32) {
        if is_pid_1() {
            let _ = send_signal(-1, number);
            return;
        }
        let commands = self.connections.values().filter_map(|connection| {
            if let Operation::Exec(running) = &connection.operation {
                running.pid()
            } else {
                None
            }
        });
        let processes = self.house.processes.by_key.values();
        let processes = processes
            .filter(|process| process.is_running())
            .map(|process| process.pid);
        for pid in commands.chain(processes) {
            let _ = signal_group(pid, number);
        }
    }

    /// Whether a stop is through: nothing left and all of it told, or out of patience.
    fn is_stopped(&self, now: Instant) -> bool {
        let Some(stop_at) = self.stop_at else {
            return false;
        };
        if now >= stop_at {
            self.signal_all(libc::SIGKILL);
            return true;
        }
        let told = self
            .connections
            .values()
            .all(|connection| match &connection.operation {
                Operation::Attached(attachment) => {
                    attachment.is_done() && !connection.wire.wants_to_send()
                }
                Operation::Closing { .. } => !connection.wire.wants_to_send(),
                Operation::Opening { .. } | Operation::Exec(_) | Operation::Spawning => true,
            });
        told && !self.children_left && !self.reap_again
    }
}

/// A code, or 128+n after signal n. Nothing else ends a process, and only ends are waited for.
fn code_of(status: WaitStatus) -> i32 {
    let signalled = status.terminating_signal().map_or(0, |signal| 128 + signal);
    status.exit_status().unwrap_or(signalled)
}
