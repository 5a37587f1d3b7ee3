//! The servers of the drill's internet: one page for everybody, and one behind a credential.

use super::CREDENTIAL_NAME;
use super::tls::Authority;
use rustls::server::Acceptor;
use rustls::{ServerConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

const IDLE_MAX: Duration = Duration::from_secs(10);
const HEAD_BYTES_MAX: usize = 16 << 10;

/// Everybody gets the same page.
pub(super) fn serve_plain(listener: &TcpListener) {
    for stream in listener.incoming().flatten() {
        thread::spawn(move || set_idle(&stream).and_then(|()| page(stream, None)));
    }
}

/// TLS as whatever name the client says; at the credential's name the credential is wanted.
pub(super) fn serve_tls(listener: &TcpListener, authority: &Arc<Authority>, credential: &Arc<str>) {
    for stream in listener.incoming().flatten() {
        let (authority, credential) = (Arc::clone(authority), Arc::clone(credential));
        thread::spawn(move || {
            set_idle(&stream)?;
            let (name, stream) = greet(stream, &authority)?;
            page(stream, (name == CREDENTIAL_NAME).then_some(&*credential))
        });
    }
}

fn set_idle(stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(IDLE_MAX))?;
    stream.set_write_timeout(Some(IDLE_MAX))
}

type TlsStream = StreamOwned<ServerConnection, TcpStream>;

fn greet(mut stream: TcpStream, authority: &Authority) -> io::Result<(String, TlsStream)> {
    let mut acceptor = Acceptor::default();
    let accepted = loop {
        acceptor.read_tls(&mut stream)?;
        if let Some(accepted) = acceptor
            .accept()
            .map_err(|(error, _)| io::Error::other(error))?
        {
            break accepted;
        }
    };
    let name = accepted
        .client_hello()
        .server_name()
        .unwrap_or("no-name.example")
        .to_owned();
    let config = authority.server(&name).map_err(io::Error::other)?;
    let connection = accepted
        .into_connection(config)
        .map_err(|(error, _)| io::Error::other(error))?;
    Ok((name, StreamOwned::new(connection, stream)))
}

/// Reads one request and answers 200, or 401 when the credential it wants is not there.
fn page(mut stream: impl Read + Write, wanted: Option<&str>) -> io::Result<()> {
    let mut head = Vec::new();
    let mut piece = [0; 2048];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < HEAD_BYTES_MAX {
        let count = stream.read(&mut piece)?;
        if count == 0 {
            return Ok(());
        }
        head.extend_from_slice(piece.get(..count).unwrap_or_default());
    }
    let head = String::from_utf8_lossy(&head);
    let authorised = wanted.is_none_or(|wanted| {
        head.lines().any(|line| {
            line.split_once(':').is_some_and(|(name, value)| {
                name.eq_ignore_ascii_case("authorization") && value.trim() == wanted
            })
        })
    });
    let (status, body) = if authorised {
        ("200 OK", "the internet\n")
    } else {
        ("401 Unauthorized", "who?\n")
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    )?;
    stream.flush()
}
