//! One connection to the guest: frames out with a deadline, frames and descriptors in, bounded.

use super::{ANSWER_WAIT, GuestError};
use box_api::guest::{Frame, FrameKind, FrameReader, Reply, TEXT_BYTES_MAX};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use serde::Serialize;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use tokio::io::{AsyncWriteExt as _, Interest};
use tokio::net::UnixStream;
use tokio::time::timeout;

const READ_BYTES: usize = 64 << 10;
/// Descriptors one connection may bring: the three of an exec.
const DESCRIPTORS_MAX: usize = 3;

#[derive(Debug)]
pub(super) struct Connection {
    socket: UnixStream,
    frames: FrameReader,
    descriptors: Vec<OwnedFd>,
    scratch: Vec<u8>,
}

impl Connection {
    pub(super) fn new(conn: OwnedFd) -> Result<Self, GuestError> {
        let socket = std::os::unix::net::UnixStream::from(conn);
        socket
            .set_nonblocking(true)
            .map_err(GuestError::Connection)?;
        let socket = UnixStream::from_std(socket).map_err(GuestError::Connection)?;
        Ok(Self {
            socket,
            frames: FrameReader::default(),
            descriptors: Vec::new(),
            scratch: vec![0; READ_BYTES],
        })
    }

    pub(super) async fn send<T: Serialize + Sync>(
        &mut self,
        kind: FrameKind,
        value: &T,
    ) -> Result<(), GuestError> {
        self.send_bytes(&Frame::encode(kind, value)?).await
    }

    /// Sends whole frames. Not to be cancelled in the middle.
    pub(super) async fn send_bytes(&mut self, frames: &[u8]) -> Result<(), GuestError> {
        match timeout(ANSWER_WAIT, self.socket.write_all(frames)).await {
            Ok(Ok(())) => Ok(()),
            // A guest that refuses may close before it has read everything; its reason waits in
            // our receive buffer and is worth more than this error.
            Ok(Err(error)) if is_hang_up(&error) => Ok(()),
            Ok(Err(error)) => Err(GuestError::Connection(error)),
            Err(_) => Err(GuestError::Late),
        }
    }

    /// The next frame, however long it takes; `None` when the guest closed between two frames.
    /// May be cancelled: nothing is lost.
    pub(super) async fn next_frame(&mut self) -> Result<Option<Frame>, GuestError> {
        loop {
            if let Some(frame) = self.frames.next_frame()? {
                return Ok(Some(frame));
            }
            match self.read().await {
                Ok(0) if self.frames.is_empty() => return Ok(None),
                Ok(0) => return Err(GuestError::Gone),
                Ok(count) => self.frames.push(&self.scratch[..count]),
                Err(error) if is_hang_up(&error) => return Ok(None),
                Err(error) => return Err(GuestError::Connection(error)),
            }
        }
    }

    /// The next reply, within [`ANSWER_WAIT`]. `Refused` becomes an error.
    pub(super) async fn reply_in_time(&mut self) -> Result<Reply, GuestError> {
        let frame = timeout(ANSWER_WAIT, self.next_frame())
            .await
            .map_err(|_| GuestError::Late)??;
        parse_reply(&frame.ok_or(GuestError::Gone)?)
    }

    /// The descriptors that came so far.
    pub(super) fn take_descriptors(&mut self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.descriptors)
    }

    async fn read(&mut self) -> io::Result<usize> {
        let Self {
            socket,
            descriptors,
            scratch,
            ..
        } = self;
        socket
            .async_io(Interest::READABLE, || receive(socket, scratch, descriptors))
            .await
    }
}

/// Reads bytes, and whatever descriptors came with them.
fn receive(
    socket: &UnixStream,
    bytes: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(bytes)];
    let got = recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    if descriptors.len() > DESCRIPTORS_MAX {
        return Err(io::Error::other("more descriptors than an exec has"));
    }
    Ok(got.bytes)
}

fn is_hang_up(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
    )
}

/// What a reply frame says; `Refused` becomes an error with a text fit to be shown.
pub(super) fn parse_reply(frame: &Frame) -> Result<Reply, GuestError> {
    let reply = frame.decode(FrameKind::Reply)?;
    if let Reply::Refused { why, text } = reply {
        return Err(GuestError::Refused {
            why,
            text: shown(&text),
        });
    }
    Ok(reply)
}

/// A text of the guest as it may be shown to a person.
fn shown(text: &str) -> String {
    let mut length = 0;
    text.chars()
        .filter(|c| !c.is_control())
        .take_while(|c| {
            length += c.len_utf8();
            length <= TEXT_BYTES_MAX
        })
        .collect()
}
