//! A program at the page's door: plain requests and `WebSockets` over a connection of its own, without
//! a browser's cookies and headers.

use crate::e2e::host::PATIENCE;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;

pub(super) const TEXT: u8 = 1;
pub(super) const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;

/// `http://localhost:2697` as host and port.
pub(super) fn authority(url: &str) -> String {
    let rest = url.split_once("://").unwrap().1;
    rest.split('/').next().unwrap().to_owned()
}

fn connect(at: &str) -> TcpStream {
    let stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Status and body of a request with these headers.
pub(super) fn request(
    at: &str,
    first: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> (u16, String) {
    let mut stream = connect(at);
    let mut head = format!("{first} HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\n");
    for (name, value) in headers {
        write!(head, "{name}: {value}\r\n").unwrap();
    }
    write!(head, "content-length: {}\r\n\r\n{body}", body.len()).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

/// A WebSocket of a program.
#[derive(Debug)]
pub(super) struct Socket {
    stream: TcpStream,
    inbox: Vec<u8>,
}

impl Socket {
    /// # Errors
    /// The status that came instead.
    pub(super) fn open(at: &str, path: &str, headers: &[(&str, &str)]) -> Result<Self, u16> {
        let mut stream = connect(at);
        let mut head = format!(
            "GET {path} HTTP/1.1\r\nhost: {at}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        );
        for (name, value) in headers {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut inbox = Vec::new();
        let end = loop {
            if let Some(at) = inbox.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            let mut piece = [0; 4096];
            let read = stream.read(&mut piece).unwrap();
            assert!(read > 0, "closed in the handshake");
            inbox.extend(&piece[..read]);
        };
        let head = String::from_utf8(inbox.drain(..end).collect()).unwrap();
        let status: u16 = head.split(' ').nth(1).unwrap().parse().unwrap();
        if status != 101 {
            return Err(status);
        }
        Ok(Self { stream, inbox })
    }

    pub(super) fn send(&mut self, kind: u8, body: &[u8]) {
        let mask = [3, 1, 4, 1];
        let mut frame = vec![0x80 | kind];
        match u16::try_from(body.len()) {
            Ok(short) if short < 126 => frame.push(0x80 | u8::try_from(short).unwrap()),
            Ok(length) => {
                frame.push(0x80 | 0x7e);
                frame.extend(length.to_be_bytes());
            }
            Err(_) => {
                frame.push(0x80 | 0x7f);
                frame.extend((body.len() as u64).to_be_bytes());
            }
        }
        frame.extend(mask);
        let masked = body.iter().zip(mask.iter().cycle());
        frame.extend(masked.map(|(byte, mask)| byte ^ mask));
        self.stream.write_all(&frame).unwrap();
    }

    pub(super) fn say(&mut self, message: &Value) {
        self.send(TEXT, message.to_string().as_bytes());
    }

    /// The next message and its kind; `None` once the host closed.
    pub(super) fn next(&mut self) -> Option<(u8, Vec<u8>)> {
        loop {
            match self.take() {
                Some((PING, _)) => {}
                Some((CLOSE, _)) => return None,
                Some(message) => return Some(message),
                None => {
                    let mut piece = [0; 16 << 10];
                    match self.stream.read(&mut piece) {
                        Ok(0) => return None,
                        Ok(read) => self.inbox.extend(&piece[..read]),
                        Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                        Err(error) => panic!("nothing came: {error}"),
                    }
                }
            }
        }
    }

    /// The next text, as JSON.
    #[track_caller]
    pub(super) fn json(&mut self) -> Value {
        loop {
            let (kind, body) = self.next().expect("the host closed");
            if kind == TEXT {
                return serde_json::from_slice(&body).unwrap();
            }
        }
    }

    fn take(&mut self) -> Option<(u8, Vec<u8>)> {
        let (first, length) = (*self.inbox.first()?, *self.inbox.get(1)?);
        let (head, bytes) = match length {
            126 => (
                4,
                u64::from(u16::from_be_bytes(
                    self.inbox.get(2..4)?.try_into().unwrap(),
                )),
            ),
            127 => (
                10,
                u64::from_be_bytes(self.inbox.get(2..10)?.try_into().unwrap()),
            ),
            short => (2, u64::from(short)),
        };
        let end = head + usize::try_from(bytes).unwrap();
        let body = self.inbox.get(head..end)?.to_vec();
        self.inbox.drain(..end);
        Some((first & 0x0F, body))
    }
}
