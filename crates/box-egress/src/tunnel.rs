//! Passes bytes on unread: TLS whose name was checked, and ports a policy lists by number.

pub(crate) mod hello;
mod pump;
mod splice;

use crate::tally::Tally;
use bytes::Bytes;
use std::io;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

/// Sends what was read already, then everything, both ways, until both sides are done.
pub(crate) async fn tunnel(
    (client, mut host): (TcpStream, TcpStream),
    early: Bytes,
    tally: &Tally,
) -> io::Result<()> {
    host.write_all(&early).await?;
    tally.sent(early.len() as u64);
    drop(early);
    pump::pump(&client, &host, tally).await
}
