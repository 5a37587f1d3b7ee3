//! A connection to a port of the box's loopback.

use super::connection::Connection;
use super::{ANSWER_WAIT, GuestError, unexpected};
use box_api::guest::{FrameKind, Loopback, Reply, Request};
use rustix::net::{AddressFamily, SocketType, ipproto, sockopt};
use std::io;
use std::os::fd::OwnedFd;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A socket connected to `port` of the box's `127.0.0.1` or `::1`. Whatever the guest hands over is
/// looked at: only a TCP socket that is connected is taken.
///
/// # Errors
/// [`GuestError::Refused`] with `NobodyListens` when nobody does, and with `Malformed` by a guest of
/// a build before this request.
pub async fn dial(conn: OwnedFd, address: Loopback, port: u16) -> Result<TcpStream, GuestError> {
    let mut conn = Connection::new(conn)?;
    conn.send(FrameKind::Request, &Request::Dial { address, port })
        .await?;
    let reply = conn.reply_in_time().await?;
    let Reply::Streams { count: 1 } = reply else {
        return Err(unexpected(&reply));
    };
    let socket = conn.take_descriptors().pop();
    let socket = socket.ok_or_else(|| GuestError::protocol("a socket got lost on the way"))?;
    let family = match address {
        Loopback::V4 => AddressFamily::INET,
        Loopback::V6 => AddressFamily::INET6,
    };
    let right = sockopt::socket_domain(&socket).is_ok_and(|domain| domain == family)
        && sockopt::socket_type(&socket).is_ok_and(|kind| kind == SocketType::STREAM)
        && sockopt::socket_protocol(&socket).is_ok_and(|kind| kind == Some(ipproto::TCP));
    if !right {
        return Err(GuestError::protocol("a descriptor that is no TCP socket"));
    }
    let socket = std::net::TcpStream::from(socket);
    socket
        .set_nonblocking(true)
        .map_err(GuestError::Connection)?;
    let socket = TcpStream::from_std(socket).map_err(GuestError::Connection)?;
    // A connection that was under way is writable once it is there, or has failed.
    timeout(ANSWER_WAIT, socket.writable())
        .await
        .map_err(|_| GuestError::Late)?
        .map_err(GuestError::Connection)?;
    match socket.take_error().and_then(|error| match error {
        Some(error) => Err(error),
        None => socket.peer_addr(),
    }) {
        Ok(_) => Ok(socket),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            Err(GuestError::Refused {
                why: box_api::guest::Refusal::NobodyListens,
                text: format!("nobody listens at port {port} of the box"),
            })
        }
        Err(error) => Err(GuestError::Connection(error)),
    }
}
