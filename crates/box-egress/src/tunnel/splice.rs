//! Moves bytes from one socket to another inside the kernel, through a pipe (splice(2)).

use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// What a pipe is asked to hold. An ordinary user has 64 MiB for all of them together
/// (`/proc/sys/fs/pipe-user-pages-soft`); past that a pipe stays as small as it is made.
const PIPE_BYTES: usize = 256 << 10;

/// A pipe between two sockets, and how much is in it.
pub(crate) struct Spliced {
    reader: OwnedFd,
    writer: OwnedFd,
    inside: usize,
}

impl Spliced {
    /// A pipe, if one is to be had.
    pub(crate) fn new() -> Option<Self> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).ok()?;
        // Works with the size it was made with as well.
        let _ = fcntl_setpipe_size(&writer, PIPE_BYTES);
        Some(Self {
            reader,
            writer,
            inside: 0,
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.inside == 0
    }

    /// Takes what is waiting in `from`. The pipe must be empty: then "would block" speaks of the
    /// socket.
    pub(crate) fn fill(&mut self, from: impl AsFd) -> io::Result<usize> {
        let bytes = splice(from, None, &self.writer, None, PIPE_BYTES, flags())?;
        self.inside += bytes;
        Ok(bytes)
    }

    /// Gives what is in the pipe to `to`, as far as it takes it.
    pub(crate) fn drain(&mut self, to: impl AsFd) -> io::Result<usize> {
        let bytes = splice(&self.reader, None, to, None, self.inside, flags())?;
        self.inside -= bytes;
        Ok(bytes)
    }
}

fn flags() -> SpliceFlags {
    SpliceFlags::NONBLOCK | SpliceFlags::MOVE
}
