//! Frames of the control socket: `u32` little-endian length, then JSON. Reading is always
//! `recvmsg(2)`, because descriptors may come beside any byte.

use box_api::Problem;
use box_api::control::FRAME_BYTES_MAX;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendFlags, recvmsg, send,
};
use serde::Serialize;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

const LENGTH_BYTES: usize = 4;
const READ_BYTES: usize = 64 << 10;
/// Three streams, and one to notice a host that sends too many.
const DESCRIPTORS_MAX: usize = 4;
/// A frame is built in one piece of this size, so that no copy of a secret stays behind.
const FRAME_BYTES_USUAL: usize = 128 << 10;
/// How long the host may take to accept what we send.
const SEND_DEADLINE: Duration = Duration::from_secs(10);

/// Why nothing more can be said over this connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WireError {
    #[error("the host closed the connection")]
    Closed,
    #[error("the host did not answer in time")]
    Slow,
    #[error("the host sent a frame of {bytes} bytes, {FRAME_BYTES_MAX} are allowed")]
    TooLong { bytes: usize },
    #[error("the host sent too many descriptors")]
    Descriptors,
    #[error("the host sent something this `box` does not understand")]
    Garbled(#[source] serde_json::Error),
    #[error("the host turned us away")]
    TurnedAway(#[source] Box<Problem>),
    #[error("could not write the request as JSON")]
    Unsayable(#[source] serde_json::Error),
    #[error("the connection to the host failed")]
    Io(#[source] Errno),
}

impl WireError {
    /// Whether the host is gone, so that another one may take over.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self, Self::Closed)
    }
}

impl From<Errno> for WireError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::CONNRESET | Errno::PIPE | Errno::NOTCONN | Errno::CONNREFUSED => Self::Closed,
            errno => Self::Io(errno),
        }
    }
}

/// One end of a control connection.
#[derive(Debug)]
pub(crate) struct Wire {
    socket: OwnedFd,
    inbox: Vec<u8>,
    /// Where in `inbox` the first frame that was not taken begins.
    start: usize,
    descriptors: Vec<OwnedFd>,
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Wire {
    pub(crate) fn new(stream: UnixStream) -> Self {
        Self {
            socket: stream.into(),
            inbox: Vec::new(),
            start: 0,
            descriptors: Vec::new(),
        }
    }

    /// Sends one frame. What was sent is wiped from memory.
    pub(crate) fn send(&self, message: &impl Serialize) -> Result<(), WireError> {
        let mut frame = Zeroizing::new(Vec::with_capacity(FRAME_BYTES_USUAL));
        frame.extend_from_slice(&[0; LENGTH_BYTES]);
        serde_json::to_writer(&mut *frame, message).map_err(WireError::Unsayable)?;
        let bytes = frame.len() - LENGTH_BYTES;
        let length = u32::try_from(bytes)
            .ok()
            .filter(|_| bytes <= FRAME_BYTES_MAX);
        let length = length.ok_or(WireError::TooLong { bytes })?;
        frame[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
        let deadline = Instant::now() + SEND_DEADLINE;
        let mut rest = frame.as_slice();
        while !rest.is_empty() {
            match send(
                &self.socket,
                rest,
                SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
            ) {
                Ok(sent) => rest = &rest[sent..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait(PollFlags::OUT, Some(deadline))?,
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// The next frame, waiting for it; `None` waits for as long as it takes.
    pub(crate) fn receive(&mut self, deadline: Option<Instant>) -> Result<Vec<u8>, WireError> {
        loop {
            if let Some(frame) = self.take()? {
                return Ok(frame);
            }
            self.wait(PollFlags::IN, deadline)?;
            self.fill()?;
        }
    }

    /// Reads what is there without waiting.
    ///
    /// # Errors
    /// [`WireError::Closed`] at the end, once every whole frame was taken.
    pub(crate) fn fill(&mut self) -> Result<(), WireError> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let end = self.inbox.len();
        self.inbox.resize(end + READ_BYTES, 0);
        let mut target = [IoSliceMut::new(&mut self.inbox[end..])];
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let received = recvmsg(&self.socket, &mut target, &mut control, flags);
        let read = received.as_ref().map_or(0, |message| message.bytes);
        self.inbox.truncate(end + read);
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                self.descriptors.extend(rights);
            }
        }
        match received {
            Ok(message) if message.flags.contains(ReturnFlags::CTRUNC) => {
                Err(WireError::Descriptors)
            }
            Ok(_) if self.descriptors.len() >= DESCRIPTORS_MAX => Err(WireError::Descriptors),
            Ok(message) if message.bytes == 0 => Err(WireError::Closed),
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// The next frame that is there in whole.
    pub(crate) fn take(&mut self) -> Result<Option<Vec<u8>>, WireError> {
        let unread = &self.inbox[self.start..];
        let Some((length, rest)) = unread.split_first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let bytes = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
        if bytes > FRAME_BYTES_MAX {
            return Err(WireError::TooLong { bytes });
        }
        let Some(frame) = rest.get(..bytes).map(<[u8]>::to_vec) else {
            return Ok(None);
        };
        self.start += LENGTH_BYTES + bytes;
        if self.start == self.inbox.len() {
            self.inbox.clear();
            self.start = 0;
        } else if self.start > READ_BYTES {
            self.inbox.drain(..self.start);
            self.start = 0;
        }
        Ok(Some(frame))
    }

    /// The descriptors that came so far.
    pub(crate) fn take_descriptors(&mut self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.descriptors)
    }

    fn wait(&self, events: PollFlags, deadline: Option<Instant>) -> Result<(), WireError> {
        let ready = wait_for(&self.socket, events, deadline)?;
        if ready { Ok(()) } else { Err(WireError::Slow) }
    }
}

/// Waits until the descriptor is ready; false once the deadline has passed.
pub(crate) fn wait_for(
    descriptor: &impl AsFd,
    events: PollFlags,
    deadline: Option<Instant>,
) -> Result<bool, Errno> {
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let timeout = left.map(timespec);
        match rustix::event::poll(&mut [PollFd::new(descriptor, events)], timeout.as_ref()) {
            Ok(0) if left.is_none_or(|left| !left.is_zero()) => {}
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(5)
    }

    #[test]
    fn frames_cut_anywhere_come_out_whole() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut wire = Wire::new(ours);
        let mut bytes = Vec::new();
        for text in ["one", "", "three"] {
            bytes.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
            bytes.extend(text.as_bytes());
        }
        for byte in &bytes[..bytes.len() - 1] {
            theirs.write_all(&[*byte]).unwrap();
            wire.fill().unwrap();
        }
        assert_eq!(wire.receive(Some(soon())).unwrap(), b"one");
        assert_eq!(wire.receive(Some(soon())).unwrap(), b"");
        assert!(wire.take().unwrap().is_none());
        theirs.write_all(&bytes[bytes.len() - 1..]).unwrap();
        assert_eq!(wire.receive(Some(soon())).unwrap(), b"three");
    }

    #[test]
    fn a_frame_longer_than_allowed_is_refused_before_it_is_read() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut wire = Wire::new(ours);
        theirs.write_all(&u32::MAX.to_le_bytes()).unwrap();
        assert!(matches!(
            wire.receive(Some(soon())),
            Err(WireError::TooLong { .. })
        ));
    }

    #[test]
    fn a_host_that_is_gone_is_told_from_one_that_is_slow() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut wire = Wire::new(ours);
        assert!(matches!(
            wire.receive(Some(Instant::now())),
            Err(WireError::Slow)
        ));
        drop(theirs);
        assert!(wire.receive(Some(soon())).unwrap_err().is_gone());
        assert!(wire.send(&"x").unwrap_err().is_gone());
    }
}
