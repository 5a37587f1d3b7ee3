//! What programs in a box do, at random from a seed; each act says whether it went as it must.

use super::client::{Client, request, send_http1, send_http2};
use super::origin::{ECHO, PORT};
use super::servers::{GOOD, LIES, RESETS, STALLS, STEADY};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Programs of a box at one time.
const PROGRAMS: u64 = 5;
/// After this a client that gets no answer goes away.
const PATIENCE: Duration = Duration::from_millis(400);
/// An act that should work has so long.
const ACT_MAX: Duration = Duration::from_secs(20);

#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) acts: AtomicU64,
    pub(crate) bytes: AtomicU64,
    /// Acts that did not go as they must; the first few are printed.
    pub(crate) wrong: AtomicU64,
}

impl Tally {
    fn take(&self, outcome: Result<u64, String>) {
        self.acts.fetch_add(1, Ordering::Relaxed);
        match outcome {
            Ok(bytes) => {
                self.bytes.fetch_add(bytes, Ordering::Relaxed);
            }
            Err(why) => {
                if self.wrong.fetch_add(1, Ordering::Relaxed) < 20 {
                    eprintln!("wrong: {why}");
                }
            }
        }
    }
}

/// A handful of programs at the same time, to their end.
pub(crate) async fn some(client: Client, tally: Arc<Tally>, seed: u64) {
    let local = tokio::task::LocalSet::new();
    for program in 0..PROGRAMS {
        let (client, tally) = (client.clone(), Arc::clone(&tally));
        let random = mixed(seed * PROGRAMS + program);
        local.spawn_local(async move {
            let outcome = timeout(ACT_MAX, act(&client, random)).await;
            tally.take(outcome.unwrap_or_else(|_| Err(format!("act {} hangs", random % 8))));
        });
    }
    local.await;
}

/// `SplitMix64`'s finaliser: one number from another.
fn mixed(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

async fn act(client: &Client, random: u64) -> Result<u64, String> {
    let size = random >> 8;
    match random % 8 {
        0 | 1 => echo(client, size % 200_000).await,
        2 | 3 => page(client, "http/1.1", size % 100_000).await,
        4 => page(client, "h2", size % 100_000).await,
        5 => page(client, "http/1.1", 1_000_000 + size % 3_000_000).await,
        6 => never(client, [RESETS, LIES][usize::from(size.is_multiple_of(2))]).await,
        _ => gone(client).await,
    }
}

/// Every byte comes back, in order.
async fn echo(client: &Client, length: u64) -> Result<u64, String> {
    let stream = client.tunnel(&format!("{STEADY}:{PORT}")).await;
    let stream = stream.map_err(|seen| format!("tunnel: {}", seen.status))?;
    let (mut from, mut to) = stream.into_split();
    let sent: Vec<u8> = (0..length).map(|at| mixed(at).to_le_bytes()[0]).collect();
    let copy = sent.clone();
    let writing = tokio::task::spawn_local(async move {
        to.write_all(&[ECHO]).await?;
        to.write_all(&copy).await?;
        to.shutdown().await
    });
    let mut back = Vec::new();
    from.read_to_end(&mut back)
        .await
        .map_err(|why| format!("echo: {why}"))?;
    let written = writing.await.map_err(|why| why.to_string())?;
    written.map_err(|why| format!("echo: {why}"))?;
    match back.split_first() {
        Some((&ECHO, rest)) if rest == sent => Ok(length),
        _ => Err(format!("echo: {} of {length} bytes came back", back.len())),
    }
}

async fn opened(
    client: &Client,
    host: &str,
    protocol: &str,
) -> Result<tokio_rustls::client::TlsStream<TcpStream>, String> {
    let stream = client.tunnel(&format!("{host}:443")).await;
    let stream = stream.map_err(|seen| format!("{host}: {}", seen.status))?;
    client
        .tls(stream, host, &[protocol])
        .await
        .map_err(|why| format!("{host}: {why}"))
}

async fn page(client: &Client, protocol: &str, length: u64) -> Result<u64, String> {
    let stream = opened(client, GOOD, protocol).await?;
    let path = format!("/bytes/{length}");
    let seen = if protocol == "h2" {
        let mut asked = request("GET", GOOD, &format!("https://{GOOD}{path}"), &[]);
        asked.headers_mut().remove("host");
        send_http2(stream, asked).await
    } else {
        send_http1(stream, request("GET", GOOD, &path, &[])).await
    };
    let seen = seen.map_err(|why| format!("page of {length}: {why}"))?;
    if seen.status == 200 && seen.body.len() as u64 == length {
        Ok(length)
    } else {
        Err(format!(
            "page: {} with {} of {length} bytes",
            seen.status,
            seen.body.len()
        ))
    }
}

/// What cannot be whole is not said to be.
async fn never(client: &Client, host: &str) -> Result<u64, String> {
    let stream = opened(client, host, "http/1.1").await?;
    match send_http1(stream, request("GET", host, "/", &[])).await {
        Ok(seen) if seen.status == 200 => Err(format!("{host}: a whole answer")),
        Ok(_) | Err(_) => Ok(0),
    }
}

/// A client that loses patience with a server that says nothing.
async fn gone(client: &Client) -> Result<u64, String> {
    let stream = opened(client, STALLS, "http/1.1").await?;
    match timeout(
        PATIENCE,
        send_http1(stream, request("GET", STALLS, "/", &[])),
    )
    .await
    {
        Err(_) => Ok(0),
        Ok(_) => Err(format!("{STALLS}: an answer")),
    }
}
