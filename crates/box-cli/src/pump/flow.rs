//! One direction of one stream: a source, a sink, and what is on its way.

use rustix::event::{PollFd, PollFlags};
use rustix::fs::FileType;
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

const CHUNK_BYTES: usize = 64 << 10;
/// pipe(7), `PIPE_BUF`: a pipe that can be written to takes this much without blocking.
const WHOLE_WRITE_BYTES: usize = 4096;

/// Where bytes come from or go to.
#[derive(Debug)]
pub(super) enum End {
    Stdin,
    Stdout,
    Stderr,
    /// A stream of the command; never blocks.
    Theirs(OwnedFd),
}

impl AsFd for End {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Stdin => rustix::stdio::stdin(),
            Self::Stdout => rustix::stdio::stdout(),
            Self::Stderr => rustix::stdio::stderr(),
            Self::Theirs(descriptor) => descriptor.as_fd(),
        }
    }
}

#[derive(Debug)]
pub(super) struct Flow {
    source: End,
    sink: End,
    buffer: Vec<u8>,
    /// How much of `buffer` has arrived.
    written: usize,
    write_bytes_max: usize,
    over: bool,
    /// Why our side could not take what came, unless its reader left.
    lost: Option<Errno>,
}

impl Flow {
    pub(super) fn new(source: End, sink: End) -> Self {
        let file = rustix::fs::fstat(&sink).map(|about| FileType::from_raw_mode(about.st_mode));
        let never_blocks = matches!(sink, End::Theirs(_)) || file == Ok(FileType::RegularFile);
        Self {
            source,
            sink,
            buffer: Vec::new(),
            written: 0,
            write_bytes_max: if never_blocks {
                CHUNK_BYTES
            } else {
                WHOLE_WRITE_BYTES
            },
            over: false,
            lost: None,
        }
    }

    pub(super) fn lost(&self) -> Option<Errno> {
        self.lost
    }

    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    pub(super) fn is_output(&self) -> bool {
        matches!(self.source, End::Theirs(_))
    }

    /// Nothing is on its way.
    pub(super) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// The command's side, if this is its output.
    pub(super) fn theirs(&self) -> Option<&OwnedFd> {
        match &self.source {
            End::Theirs(descriptor) => Some(descriptor),
            End::Stdin | End::Stdout | End::Stderr => None,
        }
    }

    /// What to wait for: room for what is on its way, else something new.
    pub(super) fn interest(&self) -> PollFd<'_> {
        if self.buffer.is_empty() {
            PollFd::new(&self.source, PollFlags::IN)
        } else {
            PollFd::new(&self.sink, PollFlags::OUT)
        }
    }

    /// Reads or writes once, as `interest` said.
    pub(super) fn advance(&mut self) {
        let had_to_wait = !self.buffer.is_empty();
        if !had_to_wait {
            self.read();
        }
        // The sink of a command never blocks: no need to ask first.
        let may_write = had_to_wait || matches!(self.sink, End::Theirs(_)) || self.can_write();
        if !self.buffer.is_empty() && may_write {
            self.write();
        }
    }

    fn can_write(&self) -> bool {
        let now = rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let mut waited = [PollFd::new(&self.sink, PollFlags::OUT)];
        rustix::event::poll(&mut waited, Some(&now)).is_ok_and(|ready| ready > 0)
    }

    fn read(&mut self) {
        self.buffer.resize(CHUNK_BYTES, 0);
        match rustix::io::read(&self.source, &mut self.buffer) {
            Ok(0) => {
                self.buffer.clear();
                self.over = true;
            }
            Ok(read) => self.buffer.truncate(read),
            Err(Errno::AGAIN | Errno::INTR) => self.buffer.clear(),
            // A terminal whose other side is closed answers EIO (pty(7)).
            Err(_) => {
                self.buffer.clear();
                self.over = true;
            }
        }
    }

    fn write(&mut self) {
        let rest = &self.buffer[self.written..];
        let rest = &rest[..rest.len().min(self.write_bytes_max)];
        match rustix::io::write(&self.sink, rest) {
            Ok(sent) => self.written += sent,
            Err(Errno::AGAIN | Errno::INTR) => {}
            // Nobody reads any more: closing our side tells the writer.
            Err(errno) => {
                let ours = matches!(self.sink, End::Stdout | End::Stderr);
                self.lost = Some(errno).filter(|errno| ours && *errno != Errno::PIPE);
                self.over = true;
                self.written = self.buffer.len();
            }
        }
        if self.written >= self.buffer.len() {
            self.buffer.clear();
            self.written = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};

    #[test]
    fn bytes_arrive_whole_and_the_end_is_passed_on() {
        let (source, mut feed) = std::io::pipe().unwrap();
        let (mut sink, theirs) = std::io::pipe().unwrap();
        let mut flow = Flow::new(End::Theirs(source.into()), End::Theirs(theirs.into()));
        feed.write_all(b"hello").unwrap();
        drop(feed);
        while !flow.is_over() {
            flow.advance();
        }
        drop(flow);
        let mut text = String::new();
        sink.read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello");
    }

    #[test]
    fn a_reader_that_went_away_ends_the_flow() {
        let (source, mut feed) = std::io::pipe().unwrap();
        let (sink, theirs) = std::io::pipe().unwrap();
        drop(sink);
        let mut flow = Flow::new(End::Theirs(source.into()), End::Theirs(theirs.into()));
        feed.write_all(b"x").unwrap();
        flow.advance();
        assert!(flow.is_over());
    }
}
