//! The host's end of the control socket, blocking, for tests.

use box_api::egress::packet::{self, DESCRIPTORS_MAX, PACKET_BYTES_MAX};
use box_api::egress::{Answer, Call, Event, Message, PROTOCOL, Request};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recvmsg,
    sendmsg, socket_with,
};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{IoSlice, IoSliceMut, Read as _, Seek as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(20);
const SPACE: usize = rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX));

pub(crate) struct Host {
    socket: OwnedFd,
    seq: u64,
    events: VecDeque<Event>,
    /// Every byte box-egress ever sent.
    pub(crate) heard: Vec<u8>,
}

impl Host {
    /// Connects and greets.
    pub(crate) fn connect(path: &Path) -> Self {
        let mut host = Self::connect_silently(path);
        let hello = Request::Hello {
            build: "test".into(),
            protocol: PROTOCOL,
        };
        let answer = host.call(hello);
        assert!(matches!(answer, Answer::Welcome(_)), "{answer:?}");
        host
    }

    pub(crate) fn connect_silently(path: &Path) -> Self {
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None).unwrap();
        set_socket_timeout(&socket, Timeout::Recv, Some(DEADLINE)).unwrap();
        connect(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
        Self {
            socket,
            seq: 0,
            events: VecDeque::new(),
            heard: Vec::new(),
        }
    }

    pub(crate) fn call(&mut self, request: Request) -> Answer {
        self.call_with(request, &[], &[])
    }

    /// Like [`Host::call`], and the call works.
    pub(crate) fn done(&mut self, request: Request) {
        let answer = self.call(request);
        assert_eq!(answer, Answer::Done);
    }

    pub(crate) fn call_with(
        &mut self,
        request: Request,
        secret: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> Answer {
        self.seq += 1;
        let seq = self.seq;
        let encoded = packet::encode(&Call { seq, request }, secret).unwrap();
        let file = encoded.file.map(|text| {
            let flags = rustix::fs::MemfdFlags::CLOEXEC;
            let mut file = File::from(rustix::fs::memfd_create("call", flags).unwrap());
            file.write_all(&text).unwrap();
            file
        });
        let all: Vec<BorrowedFd<'_>> = file
            .iter()
            .map(|file| file.as_fd())
            .chain(descriptors.iter().copied())
            .collect();
        let mut space = [MaybeUninit::uninit(); SPACE];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !all.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(&all)));
        }
        let packet = [IoSlice::new(&encoded.packet)];
        sendmsg(&self.socket, &packet, &mut control, SendFlags::NOSIGNAL).unwrap();
        loop {
            match self.receive().unwrap() {
                Message::Answer {
                    seq: answered,
                    answer,
                } => {
                    assert_eq!(answered, seq);
                    return answer;
                }
                Message::Event { event } => self.events.push_back(event),
            }
        }
    }

    /// The next event that `is_it`; those before it are dropped.
    pub(crate) fn event<T>(&mut self, is_it: impl Fn(&Event) -> Option<T>) -> T {
        loop {
            let event = match self.events.pop_front() {
                Some(event) => event,
                None => match self.receive().unwrap() {
                    Message::Event { event } => event,
                    Message::Answer { answer, .. } => panic!("nobody asked: {answer:?}"),
                },
            };
            if let Some(found) = is_it(&event) {
                return found;
            }
        }
    }

    /// The next message; `None` when box-egress hung up.
    pub(crate) fn receive(&mut self) -> Option<Message> {
        let mut packet = vec![0; PACKET_BYTES_MAX];
        let mut space = [MaybeUninit::uninit(); SPACE];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let parts = &mut [IoSliceMut::new(&mut packet)];
        let got = recvmsg(&self.socket, parts, &mut control, RecvFlags::CMSG_CLOEXEC).unwrap();
        let rights = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => descriptors.last(),
            _ => None,
        });
        if got.bytes == 0 {
            return None;
        }
        let parts = packet::split(&packet[..got.bytes]).unwrap();
        assert!(parts.secret.is_empty());
        let mut json = parts.json.to_vec();
        if json.is_empty() {
            let mut file = File::from(rights.unwrap());
            file.rewind().unwrap();
            file.read_to_end(&mut json).unwrap();
        }
        self.heard.extend_from_slice(&json);
        Some(packet::decode(&json).unwrap())
    }
}
