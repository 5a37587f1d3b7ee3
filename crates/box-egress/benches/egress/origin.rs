//! The server at the other end of the tunnels, a process on the internet's side: what a connection
//! begins with says what it is for.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

/// The argument that makes this program the server.
pub(crate) const WORD: &str = "serve-origin";
/// Every address of the internet has it at this port.
pub(crate) const PORT: u16 = 7000;
/// Sends each byte back.
pub(crate) const ECHO: u8 = b'e';
/// Sends the byte back and closes. The server's side of a connection keeps its port in mind then
/// (RFC 9293 §3.6): a client that did would soon search long for one, and that would be measured.
pub(crate) const ONCE: u8 = b'o';
/// Sends without end.
pub(crate) const SOURCE: u8 = b's';

pub(crate) fn serve() {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)).unwrap();
    rustix::net::listen(&listener, 4096).unwrap();
    for stream in listener.incoming() {
        let stream = stream.unwrap();
        // As small a stack as will do: thousands are idle at once.
        let thread = std::thread::Builder::new().stack_size(256 * 1024);
        thread.spawn(move || answer(stream)).unwrap();
    }
}

fn answer(mut stream: TcpStream) {
    let mut first = [0];
    stream.set_nodelay(true).unwrap();
    if stream.read_exact(&mut first).is_err() {
        return;
    }
    if first[0] == SOURCE {
        let zeros = vec![0; 256 * 1024];
        while stream.write_all(&zeros).is_ok() {}
        return;
    }
    if first[0] == ONCE {
        drop(stream.write_all(&first));
        return;
    }
    while stream.write_all(&first).is_ok() && stream.read_exact(&mut first).is_ok() {}
}
