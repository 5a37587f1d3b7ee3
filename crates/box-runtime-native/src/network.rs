//! The one interface of a box, `lo`, and the sockets it is served through.
//!
//! Runs inside the box's network namespace, before the box has a program of its own. Facts:
//! `reference/first-light.md` §0, §3, §5.

mod netlink;
mod nft;

use crate::step::{Step as _, StepError};
use crate::sys;
use box_runtime::Transparent;
use netlink::{Attributes, Message};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, ipproto, sockopt};
use std::net::{Ipv4Addr, SocketAddrV4};

/// Where DNS answers and our listeners stand; the first /28 of the range is never a fake address.
pub(crate) const SERVED_AT: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// The box's own address: glibc asks for IPv4 addresses only where one besides 127.0.0.1 is.
const OWN_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
/// 198.18.0.0/15 (RFC 2544), all of it local: a connection to any address of it stays inside.
const RANGE: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);
const RANGE_BITS: u8 = 15;
const DNS_PORT: u16 = 53;
const PROXY_PORT: u16 = 3128;
const TRANSPARENT_PORT: u16 = 3443;
const BACKLOG: i32 = 1024;
/// `lo` is the first interface of every network namespace.
const LO: u32 = 1;

/// The listening sockets of a box, not yet with its pidfd.
#[derive(Debug)]
pub(crate) struct Listeners {
    pub(crate) dns_udp: OwnedFd,
    pub(crate) dns_tcp: OwnedFd,
    pub(crate) proxy: OwnedFd,
    pub(crate) transparent: Transparent,
}

/// Whether the namespace is fresh or had its address and rules already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Namespace {
    Fresh,
    SetUp,
}

/// Brings `lo` up with its address and route (for a fresh namespace) and opens the listeners.
///
/// `ip_unprivileged_port_start` needs no word here: a fresh namespace has 1024 and /proc/sys is
/// read-only in the box. IPv6 stays on: `lo` has `::1`, which development servers listen on, and no
/// route leads anywhere.
pub(crate) fn open(namespace: Namespace) -> Result<Listeners, StepError> {
    if namespace == Namespace::Fresh {
        set_up_lo()?;
    }
    Ok(Listeners {
        // No SO_REUSEADDR: with it a program of the box could bind the same address on top.
        dns_udp: bound(SocketType::DGRAM, SERVED_AT, DNS_PORT)?,
        dns_tcp: listening(SERVED_AT, DNS_PORT)?,
        proxy: listening(Ipv4Addr::LOCALHOST, PROXY_PORT)?,
        transparent: transparent()?,
    })
}

fn set_up_lo() -> Result<(), StepError> {
    const IFLA_HEADER: usize = 16;
    let mut up = [0; IFLA_HEADER];
    up[4..8].copy_from_slice(&LO.to_ne_bytes());
    up[8..12].copy_from_slice(&libc::IFF_UP.cast_unsigned().to_ne_bytes());
    up[12..16].copy_from_slice(&libc::IFF_UP.cast_unsigned().to_ne_bytes());

    // struct ifaddrmsg: family, prefix length, flags, scope, index.
    let family = AddressFamily::INET.as_raw().to_ne_bytes()[0];
    let [a, b, c, d] = LO.to_ne_bytes();
    let address = [family, 32, 0, libc::RT_SCOPE_UNIVERSE, a, b, c, d];
    let address_attributes = Attributes::new()
        .with(libc::IFA_LOCAL, &OWN_ADDRESS.octets())
        .with(libc::IFA_ADDRESS, &OWN_ADDRESS.octets());

    // struct rtmsg: family, destination bits, source bits, TOS, table, protocol, scope, type, flags.
    let route = [
        family,
        RANGE_BITS,
        0,
        0,
        libc::RT_TABLE_LOCAL,
        libc::RTPROT_BOOT,
        libc::RT_SCOPE_HOST,
        libc::RTN_LOCAL,
        0,
        0,
        0,
        0,
    ];
    // RTA_PREFSRC: without it a client's own address is the one it calls, and it can call itself.
    let route_attributes = Attributes::new()
        .with(libc::RTA_DST, &RANGE.octets())
        .with(libc::RTA_OIF, &LO.to_ne_bytes())
        .with(libc::RTA_PREFSRC, &OWN_ADDRESS.octets());

    netlink::exchange(
        netlink::ROUTE,
        &[
            Message::new(libc::RTM_NEWLINK, netlink::CHANGE, &up, &Attributes::new()),
            Message::new(
                libc::RTM_NEWADDR,
                netlink::CREATE,
                &address,
                &address_attributes,
            ),
            Message::new(
                libc::RTM_NEWROUTE,
                netlink::CREATE,
                &route,
                &route_attributes,
            ),
        ],
    )
    .step("bring up `lo` with its address and its route")
}

/// TPROXY for the whole range where the kernel has it, else wildcard listeners.
fn transparent() -> Result<Transparent, StepError> {
    if let Some(listener) = every_port()? {
        return Ok(Transparent::AllPorts(listener));
    }
    Ok(Transparent::Two {
        http: listening(Ipv4Addr::UNSPECIFIED, 80)?,
        https: listening(Ipv4Addr::UNSPECIFIED, 443)?,
    })
}

/// The listener every port of the range leads to; `None` where the kernel lacks TPROXY.
fn every_port() -> Result<Option<OwnedFd>, StepError> {
    match nft::redirect_range(SERVED_AT, TRANSPARENT_PORT) {
        // The rule outlives the sockets; when they are opened anew it is there already.
        Ok(()) | Err(Errno::EXIST) => {}
        Err(Errno::NOENT | Errno::OPNOTSUPP | Errno::PROTONOSUPPORT | Errno::AFNOSUPPORT) => {
            return Ok(None);
        }
        Err(errno) => return Err(StepError::new("redirect the range with nf_tables", errno)),
    }
    let open = || -> std::io::Result<OwnedFd> {
        let socket = socket(SocketType::STREAM)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        sys::set_transparent(socket.as_fd())?;
        net::bind(&socket, &SocketAddrV4::new(SERVED_AT, TRANSPARENT_PORT))?;
        net::listen(&socket, BACKLOG)?;
        Ok(socket)
    };
    open()
        .map(Some)
        .map_err(|error| opening(SERVED_AT, TRANSPARENT_PORT, error))
}

/// `SO_REUSEADDR` on TCP lets us listen again beside connections that are still ending; nobody can
/// bind beside a socket that listens.
fn listening(address: Ipv4Addr, port: u16) -> Result<OwnedFd, StepError> {
    let socket = bound(SocketType::STREAM, address, port)?;
    net::listen(&socket, BACKLOG).map_err(|errno| opening(address, port, errno.into()))?;
    Ok(socket)
}

fn bound(kind: SocketType, address: Ipv4Addr, port: u16) -> Result<OwnedFd, StepError> {
    let open = || {
        let socket = socket(kind)?;
        if kind == SocketType::STREAM {
            sockopt::set_socket_reuseaddr(&socket, true)?;
        }
        net::bind(&socket, &SocketAddrV4::new(address, port))?;
        Ok(socket)
    };
    open().map_err(|errno: Errno| opening(address, port, errno.into()))
}

fn socket(kind: SocketType) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let protocol = if kind == SocketType::STREAM {
        ipproto::TCP
    } else {
        ipproto::UDP
    };
    net::socket_with(AddressFamily::INET, kind, flags, Some(protocol))
}

fn opening(address: Ipv4Addr, port: u16, error: std::io::Error) -> StepError {
    StepError::new(format!("listen on {address}:{port} inside the box"), error)
}
