//! Whether an address is this machine's own. Asked of the kernel's routing for every address that
//! is about to be dialled, so that a changed interface needs no following (catalogue B19, B20).

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::net::{recv, sendto, socket_with};
use std::io;
use std::net::IpAddr;

// <linux/netlink.h>, <linux/rtnetlink.h>; see netlink(7) and rtnetlink(7).
const NETLINK_ROUTE: Option<Protocol> = None; // 0
const NLMSG_HDR_BYTES: usize = 16;
const NLM_F_REQUEST: u16 = 1;
const NLMSG_ERROR: u16 = 2;
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
const RTA_DST: u16 = 1;
/// `struct nlmsghdr` and `struct rtmsg`, 12 bytes.
const REQUEST_BYTES: u32 = 28;
const RTMSG_TYPE_OFFSET: usize = 7;
const RTN_UNICAST: u8 = 1;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const ANSWER_BYTES_MAX: usize = 4096;

/// What the kernel says where there is no way to an address: no route at all, a route that says
/// so (blackhole, unreachable, prohibit), or no IPv6 in this kernel. A connect fails there too.
const NO_ROUTE: [Errno; 8] = [
    Errno::NETUNREACH,
    Errno::HOSTUNREACH,
    Errno::SRCH,
    Errno::INVAL,
    Errno::ACCESS,
    Errno::NODEV,
    Errno::AFNOSUPPORT,
    Errno::OPNOTSUPP,
];

/// How this machine would send a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    /// To itself, or to nobody in particular (broadcast, multicast, anycast).
    Own,
    /// Out, or nowhere because there is no route.
    Away,
}

/// Asks the kernel for the route to `addr` (`RTM_GETROUTE`, which needs no privilege).
///
/// # Errors
/// When the kernel does not answer as netlink(7) says; the caller then refuses the address.
pub(crate) fn route_to(addr: IpAddr) -> io::Result<Route> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        flags,
        NETLINK_ROUTE,
    )?;
    let kernel = SocketAddrNetlink::new(0, 0);
    sendto(&socket, &question(addr), SendFlags::empty(), &kernel)?;
    // The kernel answers inside the system call above, so there is nothing to wait for.
    let mut answer = [0; ANSWER_BYTES_MAX];
    let (bytes, _) = recv(&socket, &mut answer, RecvFlags::empty())?;
    read_answer(answer.get(..bytes).unwrap_or_default())
}

fn question(addr: IpAddr) -> Vec<u8> {
    let (family, address_bytes, octets) = match addr {
        IpAddr::V4(addr) => (AF_INET, 4u8, addr.octets().to_vec()),
        IpAddr::V6(addr) => (AF_INET6, 16, addr.octets().to_vec()),
    };
    let attribute_bytes = 4 + u16::from(address_bytes);
    let total = REQUEST_BYTES + u32::from(attribute_bytes);
    let mut message = Vec::new();
    message.extend_from_slice(&total.to_ne_bytes());
    message.extend_from_slice(&RTM_GETROUTE.to_ne_bytes());
    message.extend_from_slice(&NLM_F_REQUEST.to_ne_bytes());
    message.extend_from_slice(&[0; 8]);
    message.extend_from_slice(&[family, address_bytes * 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    message.extend_from_slice(&attribute_bytes.to_ne_bytes());
    message.extend_from_slice(&RTA_DST.to_ne_bytes());
    message.extend_from_slice(&octets);
    message
}

fn read_answer(answer: &[u8]) -> io::Result<Route> {
    let odd = || io::Error::from(io::ErrorKind::InvalidData);
    let kind = answer
        .get(4..6)
        .and_then(|bytes| bytes.try_into().ok())
        .map(u16::from_ne_bytes);
    match kind {
        Some(RTM_NEWROUTE) => {
            let route_type = answer
                .get(NLMSG_HDR_BYTES + RTMSG_TYPE_OFFSET)
                .ok_or_else(odd)?;
            Ok(if *route_type == RTN_UNICAST {
                Route::Away
            } else {
                Route::Own
            })
        }
        Some(NLMSG_ERROR) => {
            let code = answer
                .get(NLMSG_HDR_BYTES..NLMSG_HDR_BYTES + 4)
                .ok_or_else(odd)?;
            let code = i32::from_ne_bytes(code.try_into().map_err(|_| odd())?);
            let known = NO_ROUTE.iter().any(|errno| errno.raw_os_error() == -code);
            if known {
                Ok(Route::Away)
            } else {
                Err(io::Error::from_raw_os_error(-code))
            }
        }
        _ => Err(odd()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_this_machines_own() {
        assert_eq!(route_to("127.0.0.1".parse().unwrap()).unwrap(), Route::Own);
    }

    #[test]
    fn address_of_nobody_here_is_away() {
        // TEST-NET-3 is on no interface; without any route it is away as well.
        assert_eq!(
            route_to("203.0.113.7".parse().unwrap()).unwrap(),
            Route::Away
        );
    }
}
