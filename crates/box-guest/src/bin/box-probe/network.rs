//! Sockets.

use crate::outcome::Outcome;
use crate::words::{Usage, Words};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _, UdpSocket};
use std::time::Duration;

const FAMILIES: [(&str, i32); 10] = [
    ("unix", libc::AF_UNIX),
    ("inet", libc::AF_INET),
    ("inet6", libc::AF_INET6),
    ("netlink", libc::AF_NETLINK),
    ("packet", libc::AF_PACKET),
    ("alg", libc::AF_ALG),
    ("vsock", libc::AF_VSOCK),
    ("bluetooth", libc::AF_BLUETOOTH),
    ("can", libc::AF_CAN),
    ("xdp", libc::AF_XDP),
];
const KINDS: [(&str, i32); 4] = [
    ("stream", libc::SOCK_STREAM),
    ("dgram", libc::SOCK_DGRAM),
    ("raw", libc::SOCK_RAW),
    ("seqpacket", libc::SOCK_SEQPACKET),
];

/// A family by name or number.
pub(crate) fn socket(words: &Words) -> Result<Outcome, Usage> {
    let family = words.one_of(0, &FAMILIES).or_else(|_| words.number(0))?;
    let (kind, protocol) = (words.one_of(1, &KINDS)?, words.number(2)?);
    // SAFETY: numbers only; what is opened closes with this process.
    Ok(Outcome::of_call(
        unsafe { libc::socket(family, kind, protocol) }.into(),
    ))
}

/// TCP: a connection stands. UDP: something came back.
pub(crate) fn connect(words: &Words) -> Result<Outcome, Usage> {
    let address: SocketAddr = words.number(1)?;
    let wait = Duration::from_millis(words.number::<u64>(2)?.max(1));
    let tried = match words.text(0)? {
        "tcp" => TcpStream::connect_timeout(&address, wait).map(drop),
        "udp" => ask_udp(address, wait),
        _ => return Err(Usage),
    };
    Ok(Outcome::of(tried))
}

fn ask_udp(address: SocketAddr, wait: Duration) -> io::Result<()> {
    let any = if address.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(address)?;
    socket.set_read_timeout(Some(wait))?;
    socket.send(&[0])?;
    match socket.recv(&mut [0; 16]) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            Err(io::ErrorKind::TimedOut.into())
        }
        Err(error) => Err(error),
    }
}

pub(crate) fn bind(words: &Words) -> Result<Outcome, Usage> {
    let address: SocketAddr = words.number(1)?;
    let bound = match words.text(0)? {
        "tcp" => TcpListener::bind(address).map(drop),
        "udp" => UdpSocket::bind(address).map(drop),
        _ => return Err(Usage),
    };
    Ok(Outcome::of(bound))
}

/// What the box's resolver says to a name.
pub(crate) fn resolve(words: &Words) -> Result<Outcome, Usage> {
    let name = words.text(0)?;
    Ok(match (name, 0).to_socket_addrs() {
        Ok(addresses) => {
            let addresses: Vec<String> = addresses.map(|a| a.ip().to_string()).collect();
            Outcome::ok().with(addresses.join(" "))
        }
        Err(error) => Outcome::Refused {
            errno: "NONAME".to_owned(),
            detail: Some(error.to_string()),
        },
    })
}
