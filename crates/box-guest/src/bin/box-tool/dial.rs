//! `dial`: joins standard input and output with a port of the box's loopback.

use crate::Ended;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// The loopback answers at once or not at all.
const CONNECT_WAIT: Duration = Duration::from_secs(10);
const BUFFER_BYTES: usize = 64 << 10;

/// Until both directions have ended; each end is passed on by itself.
pub(crate) fn relay(port: u16) -> Ended {
    let socket = connect(port)
        .map_err(|error| format!("could not reach port {port} of the box: {error}"))?;
    let failed = |error: io::Error| format!("could not carry on with port {port}: {error}");
    let mut into = socket.try_clone().map_err(failed)?;
    let feed = std::thread::spawn(move || {
        // An end of either side is an end; whoever is left learns it from the socket.
        let _ended = copy(&mut io::stdin().lock(), &mut into);
        let _told = into.shutdown(Shutdown::Write);
    });
    let mut from = &socket;
    let _ended = copy(&mut from, &mut io::stdout().lock());
    // Standard output is let go, so that its reader sees the end while input may still come.
    let nowhere = std::fs::OpenOptions::new().write(true).open("/dev/null");
    if let Ok(nowhere) = nowhere {
        let _let_go = rustix::stdio::dup2_stdout(&nowhere);
    }
    feed.join()
        .map_err(|_| format!("could not carry on with port {port}"))
}

/// Servers that listen on `localhost` may have either address.
fn connect(port: u16) -> io::Result<TcpStream> {
    let v4 = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, port));
    let refused = match TcpStream::connect_timeout(&v4, CONNECT_WAIT) {
        Ok(socket) => return Ok(socket),
        Err(error) => error,
    };
    TcpStream::connect_timeout(&v6, CONNECT_WAIT).map_err(|_| refused)
}

fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            count => to.write_all(&buffer[..count])?,
        }
        to.flush()?;
    }
}
