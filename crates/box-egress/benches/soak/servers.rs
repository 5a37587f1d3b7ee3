//! The servers: one that does what it should, and those that do not.

use super::origin;
use box_fakes::Rig;
use box_fakes::rig::{Handler, Peer, PeerStream};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

pub(crate) const GOOD: &str = "cred.test";
pub(crate) const STEADY: &str = "steady.test";
pub(crate) const STALLS: &str = "stalls.test";
pub(crate) const RESETS: &str = "resets.test";
pub(crate) const LIES: &str = "lies.test";

/// Serves them; what a box must have listed to reach them.
pub(crate) fn set(rig: &Rig) -> Vec<String> {
    for name in [GOOD, STEADY] {
        rig.origin(name);
    }
    bad(rig, STALLS, Handler::new(stall));
    bad(rig, RESETS, Handler::new(reset));
    bad(rig, LIES, Handler::new(lie));
    let steady = format!("{STEADY}:{}", origin::PORT);
    [GOOD, STALLS, RESETS, LIES]
        .map(str::to_owned)
        .into_iter()
        .chain([steady])
        .collect()
}

fn bad(rig: &Rig, name: &str, serve: Handler) {
    let at = SocketAddr::new(rig.origin(name).address, 443);
    rig.peer(at, Peer::tls(name, &["http/1.1"], serve));
}

async fn head(stream: &mut PeerStream) -> bool {
    let mut seen = Vec::new();
    while !seen.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => seen.push(byte),
            Err(_) => return false,
        }
    }
    true
}

/// Begins an answer and says nothing more until the other side has gone.
async fn stall(mut stream: PeerStream) {
    if head(&mut stream).await {
        drop(
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9000\r\n\r\nso far")
                .await,
        );
        drop(stream.read_u8().await);
    }
}

/// Hangs up in the middle of a head.
async fn reset(mut stream: PeerStream) {
    if head(&mut stream).await {
        drop(stream.write_all(b"HTTP/1.1 20").await);
    }
}

/// Promises more than it sends.
async fn lie(mut stream: PeerStream) {
    if head(&mut stream).await {
        drop(
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nten bytes.")
                .await,
        );
    }
}
