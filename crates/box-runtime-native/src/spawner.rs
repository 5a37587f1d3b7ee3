//! The spawner: a tiny single-threaded process that makes the boxes.
//!
//! Forked before the host has threads: starting a box from a large process costs up to 58 ms, from
//! a small one 1.8 ms (`reference/runtime.md` §0.2). It ends when the host does; its boxes live on.

mod halt;
mod process;
mod reopen;
pub(crate) mod wire;

pub(crate) use process::FREE_NUMBERS;

use crate::cgroup::Cgroups;
use crate::rootless::Privileges;
use crate::sys;
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, WaitOptions, waitpid};
use std::io;
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::sync::Mutex;
use wire::{Answer, Request};

/// Longer than the spawner itself waits for a box that is set up.
const ANSWER_WAIT: Duration = Duration::from_secs(15);

/// The host's end.
#[derive(Debug)]
pub struct Spawner {
    socket: OwnedFd,
    pid: Pid,
    /// For reading what boxes use; whatever is written there the spawner writes.
    cgroups: Cgroups,
    privileges: Privileges,
    /// Number of the last request; held while one is under way.
    serial: Mutex<u64>,
}

/// Why the spawner did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpawnerError {
    #[error("the spawner is gone; restart the host")]
    Gone,
    #[error("the spawner did not answer in {} s", ANSWER_WAIT.as_secs())]
    Late,
    #[error("could not speak with the spawner")]
    Socket(#[source] io::Error),
    /// The spawner's own words.
    #[error("{0}")]
    Failed(String),
    #[error("the spawner answered something else")]
    Confused,
}

impl Spawner {
    /// Forks the spawner. Called once, before the process has a second thread, and after
    /// [`crate::rootless::enter`] where the host is an ordinary user's.
    ///
    /// On cgroup v2 the calling process moves into a leaf of its delegated cgroup first.
    ///
    /// # Errors
    /// When the process has threads already, may not make boxes, or a system call fails.
    pub fn fork() -> io::Result<Self> {
        let threads = std::fs::read_dir("/proc/self/task")?.count();
        if threads != 1 {
            let text = format!("the spawner is forked from a process with {threads} threads");
            return Err(io::Error::other(text));
        }
        let privileges = Privileges::current()?;
        let cgroups = Cgroups::find();
        let (ours, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        // SAFETY: this is the only thread, as was just seen.
        match unsafe { sys::fork() }? {
            None => process::run(&theirs, cgroups, privileges),
            Some(pid) => {
                let flags = rustix::fs::fcntl_getfl(&ours)?;
                rustix::fs::fcntl_setfl(&ours, flags | OFlags::NONBLOCK)?;
                Ok(Self {
                    socket: ours,
                    pid,
                    cgroups,
                    privileges,
                    serial: Mutex::const_new(0),
                })
            }
        }
    }

    /// Its process id, for `box doctor` and tests.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// What this process is to the kernel.
    pub(crate) fn privileges(&self) -> Privileges {
        self.privileges
    }

    /// How limits are held here: `cgroup v2`, `cgroup v1` or `best effort`.
    pub fn limits_held_by(&self) -> &'static str {
        self.cgroups.held_by()
    }

    pub(crate) fn cgroups(&self) -> &Cgroups {
        &self.cgroups
    }

    /// One request, one answer, one at a time.
    pub(crate) async fn ask(
        &self,
        request: Request,
    ) -> Result<(Answer, Vec<OwnedFd>), SpawnerError> {
        let mut serial = self.serial.lock().await;
        *serial += 1;
        let (bytes, descriptors) = request.encode(*serial).map_err(SpawnerError::Socket)?;
        wire::send(&self.socket, &bytes, &descriptors).map_err(told)?;
        drop(descriptors);
        // Its own copies are on their way; ours close now.
        drop(request);
        let (answer, descriptors) = tokio::time::timeout(ANSWER_WAIT, self.answer(*serial))
            .await
            .map_err(|_| SpawnerError::Late)??;
        match answer {
            Answer::Failed { text } => Err(SpawnerError::Failed(text)),
            Answer::Started { .. }
            | Answer::Reopened
            | Answer::Forgotten
            | Answer::Done
            | Answer::Last { .. } => Ok((answer, descriptors)),
        }
    }

    /// The answer to `serial`; one to an earlier request that came too late is dropped.
    async fn answer(&self, serial: u64) -> Result<(Answer, Vec<OwnedFd>), SpawnerError> {
        let socket = sys::watch(self.socket.as_fd()).map_err(SpawnerError::Socket)?;
        loop {
            let mut ready = socket.readable().await.map_err(SpawnerError::Socket)?;
            let receive = |_: &AsyncFd<_>| {
                wire::receive(&self.socket, wire::MESSAGE_BYTES, RecvFlags::DONTWAIT)
            };
            let Ok(received) = ready.try_io(receive) else {
                continue;
            };
            let (bytes, descriptors) = received.map_err(SpawnerError::Socket)?;
            if bytes.is_empty() {
                return Err(SpawnerError::Gone);
            }
            let (number, answer) = Answer::decode(&bytes).map_err(SpawnerError::Socket)?;
            if number == serial {
                return Ok((answer, descriptors));
            }
        }
    }
}

fn told(errno: Errno) -> SpawnerError {
    match errno {
        Errno::PIPE | Errno::CONNRESET => SpawnerError::Gone,
        errno => SpawnerError::Socket(errno.into()),
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        // It ends once our end is closed, which is after this; what is reaped here died before.
        let _ = waitpid(Some(self.pid), WaitOptions::NOHANG);
    }
}
