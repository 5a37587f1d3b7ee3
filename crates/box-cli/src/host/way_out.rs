//! Ends box-egress, which outlives its host on purpose.

use crate::client::wire::wait_for;
use crate::complaint::Complaint;
use crate::identity;
use box_api::egress::packet::{self, PACKET_BYTES_MAX, PacketError};
use box_api::egress::{Answer, Call, Message, PROTOCOL, Request};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv,
    send, socket_with,
};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// It answers at once; closing what boxes have open takes a moment.
const END_DEADLINE: Duration = Duration::from_secs(10);

/// Why it could not be told to end.
#[derive(Debug, thiserror::Error)]
enum Deaf {
    #[error("the connection failed: {0}")]
    Connection(#[from] Errno),
    #[error("it did not answer in time")]
    Slow,
    #[error("it closed the connection")]
    Closed,
    #[error("it sent what is not a message: {0}")]
    Garbled(#[from] PacketError),
    #[error("it refused: {0}")]
    Refused(String),
    #[error("it answered something else than was asked")]
    Confused,
}

/// Ends the one that listens at this socket and waits until its process is gone. Credentials go
/// with it. `None`: there is none.
///
/// # Errors
/// When it does not do as it is told.
pub(crate) fn end(socket: &Path) -> Result<Option<u32>, Complaint> {
    let tried = Line::open(socket).and_then(|line| line.map(Line::shut_down).transpose());
    tried.map_err(|why| {
        let title = format!(
            "could not end the way out that listens at `{}`",
            socket.display()
        );
        Complaint::engine("egress-stays", title)
            .caused_by(why)
            .hinted("its process is called `egress --host-uid …`; `kill` ends it")
    })
}

/// The number in `this box-egress speaks protocol 1, not 2`, as every build says it.
fn protocol_in(why: &str) -> Option<u32> {
    let (_, rest) = why.split_once("speaks protocol ")?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// A connection to it.
struct Line {
    socket: OwnedFd,
    deadline: Instant,
}

impl Line {
    fn open(path: &Path) -> Result<Option<Self>, Deaf> {
        let kind = SocketType::SEQPACKET;
        let socket = socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?;
        match connect(&socket, &SocketAddrUnix::new(path)?) {
            Ok(()) => Ok(Some(Self {
                socket,
                deadline: Instant::now() + END_DEADLINE,
            })),
            Err(Errno::NOENT | Errno::CONNREFUSED) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    fn shut_down(self) -> Result<u32, Deaf> {
        let hello = |protocol| Request::Hello {
            build: identity::build(),
            protocol,
        };
        // One of another build is greeted as it wants to be: it is only told to end.
        let greeted = match self.call(1, hello(PROTOCOL)) {
            Err(Deaf::Refused(why)) => match protocol_in(&why) {
                Some(theirs) => self.call(2, hello(theirs)),
                None => Err(Deaf::Refused(why)),
            },
            greeted => greeted,
        };
        let Answer::Welcome(welcome) = greeted? else {
            return Err(Deaf::Confused);
        };
        // Before it is told: afterwards the number could be somebody else's.
        let pid = i32::try_from(welcome.pid).ok().and_then(Pid::from_raw);
        let process = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let Answer::Done = self.call(3, Request::Shutdown)? else {
            return Err(Deaf::Confused);
        };
        let Some(process) = process else {
            return Ok(welcome.pid);
        };
        if self.waits_for(&process)? {
            Ok(welcome.pid)
        } else {
            Err(Deaf::Slow)
        }
    }

    fn call(&self, seq: u64, request: Request) -> Result<Answer, Deaf> {
        let encoded = packet::encode(&Call { seq, request }, &[])?;
        send(&self.socket, &encoded.packet, SendFlags::NOSIGNAL)?;
        let mut space = vec![0; PACKET_BYTES_MAX];
        loop {
            if !self.waits_for(&self.socket)? {
                return Err(Deaf::Slow);
            }
            let (bytes, _) = recv(&self.socket, space.as_mut_slice(), RecvFlags::DONTWAIT)?;
            if bytes == 0 {
                return Err(Deaf::Closed);
            }
            let parts = packet::split(space.get(..bytes).unwrap_or_default())?;
            let answer = match packet::decode(parts.json)? {
                Message::Answer { answer, .. } => answer,
                Message::Event { .. } => continue,
            };
            return if let Answer::Refused { why } = answer {
                Err(Deaf::Refused(why))
            } else {
                Ok(answer)
            };
        }
    }

    fn waits_for(&self, what: &OwnedFd) -> Result<bool, Deaf> {
        wait_for(what, PollFlags::IN, Some(self.deadline)).map_err(Deaf::from)
    }
}
