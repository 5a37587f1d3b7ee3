//! One connection to box-egress: packets out, answers and events in.

use box_api::egress::packet::{self, FILE_BYTES_MAX, PACKET_BYTES_MAX, PacketError};
use box_api::egress::{Answer, Call, Event, Message, PROTOCOL, Request, Welcome};
use box_runtime::{BoxSockets, Transparent};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recvmsg,
    sendmsg, socket_with,
};
use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut, Read as _, Seek as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::UnixStream;
use zeroize::Zeroizing;

/// Longest box-egress may take for one answer. It never waits for the network before it answers.
const ANSWER_DEADLINE: Duration = Duration::from_secs(5);
/// Events set aside while an answer is awaited; box-egress keeps the rest.
const EVENTS_ASIDE_MAX: usize = 4096;

/// Why a connection to box-egress is of no use any more.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    #[error("could not reach it")]
    Connect(#[source] io::Error),
    #[error("the connection broke")]
    Broken(#[source] io::Error),
    #[error("it closed the connection")]
    Closed,
    #[error("it did not answer in time")]
    TooSlow,
    #[error("it sent what is not a message")]
    Malformed(#[from] PacketError),
    #[error("it speaks protocol {theirs}, this host {PROTOCOL}")]
    Protocol { theirs: u32 },
    #[error("it answered another question")]
    Confused,
}

/// The number in `this box-egress speaks protocol 1, not 2`, as every build says it.
fn protocol_in(why: &str) -> Option<u32> {
    let (_, rest) = why.split_once("speaks protocol ")?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// A connection on which both sides have greeted.
#[derive(Debug)]
pub(super) struct Link {
    /// A packet socket: of the stream's own verbs only readiness is used.
    socket: UnixStream,
    seq: u64,
    aside: VecDeque<Event>,
    pub(super) welcome: Welcome,
}

impl Link {
    /// Connects and greets. One that speaks another protocol is greeted in its own, in which it
    /// can be told to end: those words never change. [`Self::welcome`] says which it is.
    pub(super) async fn open(path: &Path, build: &str) -> Result<Self, LinkError> {
        let socket = connected(path).map_err(LinkError::Connect)?;
        let nobody = Welcome {
            build: String::new(),
            protocol: 0,
            pid: 0,
            configured: false,
        };
        let mut link = Self {
            socket,
            seq: 0,
            aside: VecDeque::new(),
            welcome: nobody,
        };
        let hello = |protocol| Request::Hello {
            build: build.to_owned(),
            protocol,
        };
        let mut answer = link.call(hello(PROTOCOL)).await?;
        if let Answer::Refused { why } = &answer
            && let Some(theirs) = protocol_in(why)
        {
            answer = link.call(hello(theirs)).await?;
        }
        let Answer::Welcome(welcome) = answer else {
            return Err(LinkError::Confused);
        };
        link.welcome = welcome;
        Ok(link)
    }

    /// Asks and waits for the answer.
    pub(super) async fn call(&mut self, request: Request) -> Result<Answer, LinkError> {
        self.call_with(request, Zeroizing::default(), &[]).await
    }

    /// Asks with a secret and descriptors beside, and waits for the answer.
    pub(super) async fn call_with(
        &mut self,
        request: Request,
        secret: Zeroizing<Vec<u8>>,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<Answer, LinkError> {
        self.seq += 1;
        let seq = self.seq;
        let packet::Encoded { packet, file } = packet::encode(&Call { seq, request }, &secret)?;
        let packet = Zeroizing::new(packet);
        let exchange = async {
            let body = file
                .as_deref()
                .map(sealed)
                .transpose()
                .map_err(LinkError::Broken)?;
            let all: Vec<BorrowedFd<'_>> = body
                .iter()
                .map(|body| body.as_fd())
                .chain(descriptors.iter().copied())
                .collect();
            self.send(&packet, &all).await.map_err(LinkError::Broken)?;
            self.answer_to(seq).await
        };
        tokio::time::timeout(ANSWER_DEADLINE, exchange)
            .await
            .map_err(|_| LinkError::TooSlow)?
    }

    async fn answer_to(&mut self, seq: u64) -> Result<Answer, LinkError> {
        loop {
            match self.receive().await? {
                Message::Answer {
                    seq: answered,
                    answer,
                } if answered == seq => return Ok(answer),
                Message::Answer { .. } => return Err(LinkError::Confused),
                Message::Event { event } if self.aside.len() < EVENTS_ASIDE_MAX => {
                    self.aside.push_back(event);
                }
                Message::Event { .. } => {}
            }
        }
    }

    /// The next event. May be dropped and called again without losing one.
    pub(super) async fn event(&mut self) -> Result<Event, LinkError> {
        if let Some(event) = self.aside.pop_front() {
            return Ok(event);
        }
        match self.receive().await? {
            Message::Event { event } => Ok(event),
            Message::Answer { .. } => Err(LinkError::Confused),
        }
    }

    async fn send(&self, packet: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        self.socket
            .async_io(Interest::WRITABLE, || {
                let mut space = [MaybeUninit::uninit(); ANCILLARY_BYTES];
                let mut ancillary = SendAncillaryBuffer::new(&mut space);
                if !descriptors.is_empty() {
                    ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
                }
                // A packet socket takes a packet whole or not at all.
                sendmsg(
                    &self.socket,
                    &[IoSlice::new(packet)],
                    &mut ancillary,
                    SendFlags::NOSIGNAL,
                )?;
                Ok(())
            })
            .await
    }

    async fn receive(&self) -> Result<Message, LinkError> {
        let (packet, file) = self
            .socket
            .async_io(Interest::READABLE, || receive_packet(self.socket.as_fd()))
            .await
            .map_err(LinkError::Broken)?;
        if packet.is_empty() {
            return Err(LinkError::Closed);
        }
        let parts = packet::split(&packet)?;
        if !parts.json.is_empty() {
            return Ok(packet::decode(parts.json)?);
        }
        let body = file.ok_or(PacketError::Length)?;
        let text = read_file(body).map_err(LinkError::Broken)?;
        Ok(packet::decode(&text)?)
    }
}

const ANCILLARY_BYTES: usize = rustix::cmsg_space!(ScmRights(packet::DESCRIPTORS_MAX));

fn connected(path: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    // A Unix socket connects at once or not at all (EAGAIN: too many wait).
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    UnixStream::from_std(socket.into())
}

/// A packet and the descriptor beside it; an empty packet is the end.
fn receive_packet(socket: BorrowedFd<'_>) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
    let mut packet = vec![0; PACKET_BYTES_MAX];
    let mut space = [MaybeUninit::uninit(); ANCILLARY_BYTES];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::TRUNC;
    let mut parts = [IoSliceMut::new(&mut packet)];
    let received = recvmsg(socket, &mut parts, &mut ancillary, flags)?;
    let mut file = None;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            file = file.or(descriptors.last());
        }
    }
    if received.bytes > packet.len() {
        return Err(Errno::MSGSIZE.into());
    }
    packet.truncate(received.bytes);
    Ok((packet, file))
}

/// The text in a file that nobody can change any more.
fn sealed(text: &[u8]) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = std::fs::File::from(memfd_create("box-egress message", flags)?);
    file.write_all(text)?;
    file.rewind()?;
    let all = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    fcntl_add_seals(&file, all)?;
    Ok(file.into())
}

fn read_file(file: OwnedFd) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let mut file = std::fs::File::from(file);
    file.rewind()?;
    let bytes_max = u64::try_from(FILE_BYTES_MAX).unwrap_or(u64::MAX);
    file.take(bytes_max + 1).read_to_end(&mut text)?;
    Ok(text)
}

/// The sockets of a box in the order the protocol wants them.
pub(super) fn descriptors(sockets: &BoxSockets) -> Vec<BorrowedFd<'_>> {
    let mut all = vec![
        sockets.dns_udp.as_fd(),
        sockets.dns_tcp.as_fd(),
        sockets.proxy.as_fd(),
    ];
    match &sockets.transparent {
        Transparent::AllPorts(every) => all.push(every.as_fd()),
        Transparent::Two { http, https } => all.extend([http.as_fd(), https.as_fd()]),
    }
    all.push(sockets.pidfd.as_fd());
    all
}
