//! Packets over a SEQPACKET Unix socket: bytes and descriptors, and who is at the other end.

use crate::socket::watched;
use box_api::egress::Call;
use box_api::egress::packet::{
    DESCRIPTORS_MAX, Encoded, FILE_BYTES_MAX, PACKET_BYTES_MAX, PacketError, decode, split,
};
use rustix::fs::{MemfdFlags, fstat, memfd_create};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, accept_with, recvmsg, sendmsg, sockopt,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::sleep;
use zeroize::Zeroizing;

const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

pub(crate) struct ControlListener {
    socket: AsyncFd<OwnedFd>,
    host_uid: u32,
}

impl ControlListener {
    /// # Errors
    /// When the descriptor cannot be waited on.
    pub(crate) fn new(socket: OwnedFd, host_uid: u32) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(Self {
            socket: watched(socket, Interest::READABLE)?,
            host_uid,
        })
    }

    /// The next host. Strangers are turned away on the way.
    pub(crate) async fn accept(&self) -> io::Result<Packets> {
        loop {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let accept = |socket: &OwnedFd| Ok(accept_with(socket, flags)?);
            let peer = match self.socket.async_io(Interest::READABLE, accept).await {
                Ok(peer) => peer,
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::CONNABORTED | Errno::INTR) => continue,
                    // Nothing left to open it with: some will come back.
                    Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                        sleep(ACCEPT_PAUSE).await;
                        continue;
                    }
                    _ => return Err(error),
                },
            };
            let uid = sockopt::socket_peercred(&peer).map(|peer| peer.uid.as_raw());
            // Root alone is not enough: in an ordinary user's namespace uid 0 is root of its boxes.
            if uid.is_ok_and(|uid| uid == self.host_uid) {
                return Ok(Packets(watched(
                    peer,
                    Interest::READABLE | Interest::WRITABLE,
                )?));
            }
        }
    }
}

/// A connection to a host.
pub(crate) struct Packets(AsyncFd<OwnedFd>);

/// A packet as it came. Wiped when dropped: it may hold a secret.
pub(crate) struct Received {
    bytes: Zeroizing<Vec<u8>>,
    descriptors: Vec<OwnedFd>,
}

impl Packets {
    /// The next packet, or `None` when the host hung up.
    pub(crate) async fn receive(&self) -> io::Result<Option<Received>> {
        loop {
            // Not tried before something is there: the buffer for it is large.
            let mut ready = self.0.readable().await?;
            if let Ok(received) = ready.try_io(|socket| receive_now(socket.get_ref())) {
                return received;
            }
        }
    }

    /// Sends one packet, as soon as it fits into the host's queue.
    pub(crate) async fn send(&self, encoded: &Encoded) -> io::Result<()> {
        let file = encoded.file.as_deref().map(in_memory).transpose()?;
        self.0
            .async_io(Interest::WRITABLE, |socket| {
                send_now(socket, encoded, file.as_ref())
            })
            .await
    }
}

fn receive_now(socket: &OwnedFd) -> io::Result<Option<Received>> {
    let mut bytes = Zeroizing::new(vec![0; PACKET_BYTES_MAX]);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let message = recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut bytes)],
        &mut control,
        flags,
    )?;
    let mut descriptors = Vec::new();
    for received in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = received {
            descriptors.extend(received);
        }
    }
    if message
        .flags
        .intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC)
    {
        return Err(io::ErrorKind::InvalidData.into());
    }
    if message.bytes == 0 {
        return Ok(None);
    }
    bytes.truncate(message.bytes);
    Ok(Some(Received { bytes, descriptors }))
}

fn send_now(socket: &OwnedFd, encoded: &Encoded, file: Option<&OwnedFd>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = file.map(|file| [file.as_fd()]);
    if let Some(descriptors) = &descriptors {
        control.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    let packet = [IoSlice::new(&encoded.packet)];
    sendmsg(socket, &packet, &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// A file without a name, for a message that does not fit into a packet.
fn in_memory(bytes: &[u8]) -> io::Result<OwnedFd> {
    let file = memfd_create("message", MemfdFlags::CLOEXEC)?;
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = rustix::io::write(&file, rest)?;
        rest = rest.get(written..).unwrap_or_default();
    }
    Ok(file)
}

/// A call, and what came with it. Has no `Debug` on purpose.
pub(crate) struct Brought {
    pub(crate) call: Call,
    pub(crate) secret: Zeroizing<Vec<u8>>,
    pub(crate) descriptors: Vec<OwnedFd>,
}

impl Received {
    /// The call in the packet, its appendix and its descriptors.
    pub(crate) fn call(mut self) -> Result<Brought, ReceiveError> {
        let parts = split(&self.bytes)?;
        let secret = Zeroizing::new(parts.secret.to_vec());
        let call = if parts.json.is_empty() {
            if self.descriptors.is_empty() {
                return Err(PacketError::Length.into());
            }
            decode(&whole(&self.descriptors.remove(0))?)?
        } else {
            decode(parts.json)?
        };
        Ok(Brought {
            call,
            secret,
            descriptors: self.descriptors,
        })
    }
}

/// Why a packet is no call.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReceiveError {
    #[error(transparent)]
    Packet(#[from] PacketError),
    #[error("could not read the message's file: {0}")]
    File(#[from] Errno),
}

/// Everything in a file, whatever its offset is.
fn whole(file: &OwnedFd) -> Result<Vec<u8>, ReceiveError> {
    let bytes = usize::try_from(fstat(file)?.st_size).unwrap_or(usize::MAX);
    if bytes > FILE_BYTES_MAX {
        return Err(PacketError::TooLong.into());
    }
    let mut all = vec![0; bytes];
    let mut done = 0;
    while done < bytes {
        match rustix::io::pread(file, &mut all[done..], done as u64)? {
            0 => return Err(PacketError::Length.into()),
            read => done += read,
        }
    }
    Ok(all)
}
