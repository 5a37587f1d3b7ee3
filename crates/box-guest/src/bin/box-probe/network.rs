//! Sockets.

use crate::outcome::Outcome;
use crate::words::{Usage, Words};
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener, UnixStream};
use std::time::{Duration, Instant};

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

/// A path, or `@` and an abstract name (unix(7)).
fn unix_address(text: &str) -> io::Result<UnixAddress> {
    match text.strip_prefix('@') {
        Some(name) => UnixAddress::from_abstract_name(name),
        None => UnixAddress::from_pathname(text),
    }
}

pub(crate) fn unix_connect(words: &Words) -> Result<Outcome, Usage> {
    let address = unix_address(words.text(0)?);
    Ok(Outcome::of(
        address
            .and_then(|at| UnixStream::connect_addr(&at))
            .map(drop),
    ))
}

/// Listens for so long.
pub(crate) fn unix_serve(words: &Words) -> Result<Outcome, Usage> {
    let time = Duration::from_millis(words.number(1)?);
    let bound = unix_address(words.text(0)?).and_then(|at| UnixListener::bind_addr(&at));
    let _listener = match bound {
        Ok(listener) => listener,
        Err(error) => return Ok(Outcome::of(Err(error))),
    };
    std::thread::sleep(time);
    Ok(Outcome::ok())
}

/// Says bytes to who listens at a path, and tells what came back: `back=<bytes in hex>`.
pub(crate) fn unix_say(words: &Words) -> Result<Outcome, Usage> {
    const BACK_BYTES_MAX: usize = 512;
    let bytes = unhex(words.text(1)?)?;
    let deadline = Instant::now() + Duration::from_millis(words.number(2)?);
    let stream = unix_address(words.text(0)?).and_then(|at| UnixStream::connect_addr(&at));
    let mut stream = match stream {
        Ok(stream) => stream,
        Err(error) => return Ok(Outcome::of(Err(error))),
    };
    // Whoever hangs up in the middle may have answered before.
    drop(stream.write_all(&bytes));
    let mut back = Vec::new();
    let mut piece = [0; BACK_BYTES_MAX];
    while back.len() < BACK_BYTES_MAX {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            break;
        }
        match stream.read(&mut piece) {
            Ok(count @ 1..) => back.extend_from_slice(&piece[..count]),
            Ok(0) | Err(_) => break,
        }
    }
    let back = hex(&back);
    Ok(Outcome::ok().with(format!("back={back}")))
}

fn hex(bytes: &[u8]) -> String {
    let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    pairs.concat()
}

fn unhex(text: &str) -> Result<Vec<u8>, Usage> {
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| {
            let pair = str::from_utf8(pair).map_err(|_| Usage)?;
            u8::from_str_radix(pair, 16).map_err(|_| Usage)
        })
        .collect()
}

/// Sets the flags of `lo` to what they are (netdevice(7)).
pub(crate) fn interface_flags() -> Outcome {
    let socket = match UdpSocket::bind("0.0.0.0:0") {
        Ok(socket) => socket,
        Err(error) => return Outcome::of(Err(error)),
    };
    // SAFETY: all zeros is a valid request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(*b"lo") {
        *to = from.cast_signed();
    }
    // SAFETY: a descriptor that is open, and the struct these requests take.
    let set = unsafe {
        libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS, &raw mut request);
        libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request)
    };
    Outcome::of_call(set.into())
}

const OPTIONS: [(&str, i32); 3] = [
    ("mark", libc::SO_MARK),
    ("transparent", libc::IP_TRANSPARENT),
    ("force-buffer", libc::SO_RCVBUFFORCE),
];

/// A setting of a socket that only who runs the network may make.
pub(crate) fn socket_option(words: &Words) -> Result<Outcome, Usage> {
    let option = words.one_of(0, &OPTIONS)?;
    let level = if option == libc::IP_TRANSPARENT {
        libc::SOL_IP
    } else {
        libc::SOL_SOCKET
    };
    let socket = match UdpSocket::bind("0.0.0.0:0") {
        Ok(socket) => socket,
        Err(error) => return Ok(Outcome::of(Err(error))),
    };
    let on = 1_i32;
    // SAFETY: an int, its size given.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const on).cast(),
            libc::socklen_t::try_from(size_of_val(&on)).unwrap_or(4),
        )
    };
    Ok(Outcome::of_call(set.into()))
}
