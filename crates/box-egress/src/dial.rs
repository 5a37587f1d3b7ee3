//! Connects to one of the pinned addresses: several at a time, staggered (RFC 8305), all judged
//! before.

pub(crate) mod proxy;

use crate::limits::DIAL_WAIT;
use crate::refuse::Refused;
use crate::resolve::Pinned;
use crate::socket;
use box_api::egress::Reason;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Time one attempt has for itself before the next begins (RFC 8305 §5).
const STAGGER: Duration = Duration::from_millis(250);

/// Connects to the first address that answers, and says which.
pub(crate) async fn dial(pinned: &Pinned) -> Result<(TcpStream, IpAddr), Refused> {
    let allowed = pinned.allowed();
    match timeout(DIAL_WAIT, race(pinned.addrs())).await {
        Ok(Some((stream, addr))) => {
            allowed.tally().reached(addr);
            Ok((stream, addr.ip()))
        }
        Ok(None) => Err(allowed.refuse(Reason::Unreachable)),
        Err(_) => Err(allowed.refuse(Reason::Timeout)),
    }
}

async fn race(addrs: &[SocketAddr]) -> Option<(TcpStream, SocketAddr)> {
    let mut waiting = addrs.iter().copied();
    let mut attempts = JoinSet::new();
    loop {
        if let Some(addr) = waiting.next() {
            attempts.spawn(async move { connect(addr).await.map(|stream| (stream, addr)) });
        }
        let more = waiting.len() > 0;
        tokio::select! {
            finished = attempts.join_next() => match finished {
                Some(Ok(Ok(found))) => return Some(found),
                Some(_) => {}
                None if more => {}
                None => return None,
            },
            () = sleep(STAGGER), if more => {}
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the dial of a pinned address, or of the deployment's own proxy"
)]
async fn connect(addr: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(addr).await?;
    socket::tune(&stream);
    Ok(stream)
}
