//! One end of a pipe whose other end may never be moved again: waits, but not forever.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::io::{self, Read, Write};
use std::time::Duration;

/// Longest nothing may move: a person may look at what they type before they go on.
pub(super) const SILENCE_MAX: Duration = Duration::from_mins(10);

/// A pipe, or whatever else a descriptor is; reads and writes fail with
/// [`TimedOut`](io::ErrorKind::TimedOut) when nothing moves for ten minutes.
#[derive(Debug)]
pub struct Pipe(OwnedFd);

impl Pipe {
    /// # Errors
    /// When the descriptor cannot be made non-blocking.
    pub fn new(end: OwnedFd) -> io::Result<Self> {
        let flags = rustix::fs::fcntl_getfl(&end)?;
        rustix::fs::fcntl_setfl(&end, flags | rustix::fs::OFlags::NONBLOCK)?;
        Ok(Self(end))
    }

    fn wait(&self, events: PollFlags) -> io::Result<()> {
        let timeout = Timespec {
            tv_sec: i64::try_from(SILENCE_MAX.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: 0,
        };
        match poll(&mut [PollFd::new(&self.0, events)], Some(&timeout)) {
            Ok(0) => Err(io::ErrorKind::TimedOut.into()),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match rustix::io::read(&self.0, &mut *buffer) {
                Err(Errno::AGAIN) => self.wait(PollFlags::IN)?,
                Err(Errno::INTR) => {}
                read => return Ok(read?),
            }
        }
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match rustix::io::write(&self.0, bytes) {
                Err(Errno::AGAIN) => self.wait(PollFlags::OUT)?,
                Err(Errno::INTR) => {}
                written => return Ok(written?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
