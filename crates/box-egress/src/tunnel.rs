//! Passes bytes on unread: TLS whose name was checked, and ports a policy lists by number.

pub(crate) mod hello;
mod pump;
mod splice;

use bytes::Bytes;
use std::io;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

/// Sends what was read already, then everything, both ways, until both sides are done.
pub(crate) async fn tunnel(client: TcpStream, mut host: TcpStream, early: Bytes) -> io::Result<()> {
    host.write_all(&early).await?;
    drop(early);
    pump::pump(&client, &host).await
}
