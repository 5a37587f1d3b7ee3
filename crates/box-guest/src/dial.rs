//! A connection to a port of the box's own loopback, handed to the host.
//!
//! The guest only makes the socket, here where the namespace is: nothing that goes through it
//! passes the guest, and it counts as none of its connections.

use crate::launch::Refused;
use box_api::guest::{Loopback, Refusal};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

/// A socket that is connected, or is about to be: the guest never waits.
pub(crate) fn dial(address: Loopback, port: u16) -> Result<OwnedFd, Refused> {
    let (family, to) = match address {
        Loopback::V4 => (
            AddressFamily::INET,
            SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
        ),
        Loopback::V6 => (
            AddressFamily::INET6,
            SocketAddr::from((Ipv6Addr::LOCALHOST, port)),
        ),
    };
    let what = format!("reach port {port} of the box");
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)
        .map_err(|error| Refused::failed(&what, error))?;
    match connect(&socket, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(Errno::CONNREFUSED | Errno::ADDRNOTAVAIL) => Err(Refused::new(
            Refusal::NobodyListens,
            format!("nobody listens at port {port} of the box"),
        )),
        Err(error) => Err(Refused::failed(&what, error)),
    }
}
