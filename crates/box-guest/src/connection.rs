//! One connection of the host: bytes in, frames out, replies back, all bounded and never waited
//! for.

use crate::attachment::Attachment;
use crate::command::Running;
use crate::launch::Refused;
use box_api::guest::{Frame, FrameKind, FrameReader, ProtocolError, Reply};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, send, sendmsg};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};
use zeroize::Zeroize as _;

/// How long a connection may take for its request, or for taking the last reply.
const PATIENCE: Duration = Duration::from_secs(10);
/// Replies waiting above this: nothing more is made for this connection until the host reads.
const WAITING_BYTES_FULL: usize = 128 << 10;
/// The three of an exec.
const DESCRIPTORS_MAX: usize = 3;

/// What a connection is doing.
#[derive(Debug)]
pub(crate) enum Operation {
    /// Its request has not arrived.
    Opening {
        until: Instant,
    },
    /// A command that ends with it.
    Exec(Running),
    /// Waits for a durable process to start or fail.
    Spawning,
    Attached(Attachment),
    /// The last reply was made; what waits is sent, then it is closed.
    Closing {
        until: Instant,
    },
}

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) wire: Wire,
    pub(crate) operation: Operation,
}

/// The socket, what arrived and is no frame yet, what waits to be sent.
#[derive(Debug)]
pub(crate) struct Wire {
    socket: OwnedFd,
    frames: FrameReader,
    waiting: Vec<u8>,
    /// How much of `waiting` was sent.
    sent: usize,
}

/// The other side is not there any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gone;

impl Connection {
    pub(crate) fn new(socket: OwnedFd, now: Instant) -> Self {
        let wire = Wire {
            socket,
            frames: FrameReader::default(),
            waiting: Vec::new(),
            sent: 0,
        };
        Self {
            wire,
            operation: Operation::Opening {
                until: now + PATIENCE,
            },
        }
    }

    /// The next whole frame that arrived. After the last reply nothing the host says counts.
    pub(crate) fn next_frame(&mut self) -> Result<Option<Frame>, ProtocolError> {
        let frame = self.wire.frames.next_frame();
        if matches!(self.operation, Operation::Closing { .. }) {
            self.wire.frames = FrameReader::default();
            return Ok(None);
        }
        frame
    }

    /// A reply after which nothing comes.
    pub(crate) fn reply_last(&mut self, reply: &Reply, now: Instant) {
        self.wire.reply(reply);
        self.close_when_sent(now);
    }

    pub(crate) fn close_when_sent(&mut self, now: Instant) {
        self.operation = Operation::Closing {
            until: now + PATIENCE,
        };
    }

    pub(crate) fn refuse(&mut self, refused: Refused, now: Instant) {
        self.reply_last(
            &Reply::Refused {
                why: refused.why,
                text: refused.text,
            },
            now,
        );
    }

    /// When it is closed for being slow.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match &self.operation {
            Operation::Opening { until } | Operation::Closing { until } => Some(*until),
            Operation::Exec(_) | Operation::Spawning | Operation::Attached(_) => None,
        }
    }

    /// Nothing is left to do here.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        let closing = matches!(self.operation, Operation::Closing { .. });
        let late = self.deadline().is_some_and(|until| until <= now);
        late || (closing && !self.wire.wants_to_send())
    }
}

impl Wire {
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Takes what has arrived, at most one scratch full.
    pub(crate) fn receive(&mut self, scratch: &mut [u8]) -> Result<(), Gone> {
        match rustix::io::read(&self.socket, &mut *scratch) {
            Ok(0) => Err(Gone),
            Ok(count) => {
                self.frames.push(&scratch[..count]);
                scratch[..count].zeroize();
                Ok(())
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(_) => Err(Gone),
        }
    }

    /// Adds a reply to what waits. Callers bound how many there can be.
    pub(crate) fn reply(&mut self, reply: &Reply) {
        // None is longer than a frame: the largest, a list of all processes, is 64 KiB.
        if let Ok(frame) = Frame::encode(FrameKind::Reply, reply) {
            self.waiting.extend_from_slice(&frame);
        }
    }

    /// Sends the descriptors of a command beside their reply, the first one of this connection.
    pub(crate) fn send_streams(&mut self, streams: &[OwnedFd]) -> Result<(), Gone> {
        let reply = Reply::Streams {
            count: u32::try_from(streams.len()).unwrap_or(u32::MAX),
        };
        let frame = Frame::encode(FrameKind::Reply, &reply).map_err(|_| Gone)?;
        let rights: Vec<BorrowedFd<'_>> = streams.iter().map(AsFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(SendAncillaryMessage::ScmRights(&rights)) {
            return Err(Gone);
        }
        let parts = [IoSlice::new(&frame)];
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let sent = sendmsg(&self.socket, &parts, &mut control, flags).map_err(|_| Gone)?;
        self.waiting.extend_from_slice(&frame[sent..]);
        Ok(())
    }

    /// For whoever adds pieces; only while [`Self::has_room`].
    pub(crate) fn waiting_mut(&mut self) -> &mut Vec<u8> {
        &mut self.waiting
    }

    pub(crate) fn has_room(&self) -> bool {
        self.waiting.len() - self.sent < WAITING_BYTES_FULL
    }

    pub(crate) fn wants_to_send(&self) -> bool {
        self.sent < self.waiting.len()
    }

    /// Sends what it can of what waits.
    pub(crate) fn flush(&mut self) -> Result<(), Gone> {
        while self.wants_to_send() {
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match send(&self.socket, &self.waiting[self.sent..], flags) {
                Ok(count) => self.sent += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM) => {
                    // So that it holds what waits and not all that ever went through.
                    self.waiting.drain(..self.sent);
                    self.sent = 0;
                    return Ok(());
                }
                Err(_) => return Err(Gone),
            }
        }
        self.sent = 0;
        // An idle connection holds no memory.
        self.waiting = Vec::new();
        Ok(())
    }
}
