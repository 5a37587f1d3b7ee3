//! What the client does, the same through every contestant; blocking, a thread a connection.

use super::client::Client;
use super::origin::{ECHO, ONCE, PORT, SOURCE};
use super::process::to_f64;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The host behind the tunnels, and the one whose TLS is opened.
pub(crate) const PLAIN_HOST: &str = "origin.test";
pub(crate) const OPENED_HOST: &str = "cred.test";
/// What a measured request fetches.
pub(crate) const PAGE_BYTES: usize = 1024;

const BULK: Duration = Duration::from_secs(2);
const BUSY: Duration = Duration::from_secs(1);
const BUSY_CLIENTS: usize = 16;
const LATENCY_CONNECTIONS: usize = 400;
const REQUESTS: Duration = Duration::from_secs(2);

/// How a client gets to a server.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Route {
    Direct,
    Proxy(SocketAddr),
}

/// Where names lead without a proxy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Addresses {
    pub(crate) plain: IpAddr,
    pub(crate) opened: IpAddr,
}

impl Route {
    fn tunnel(self, addresses: Addresses) -> TcpStream {
        let stream = match self {
            Self::Direct => TcpStream::connect((addresses.plain, PORT)).unwrap(),
            Self::Proxy(proxy) => through(proxy, PLAIN_HOST, PORT),
        };
        stream.set_nodelay(true).unwrap();
        stream
    }

    fn to_opened(self, addresses: Addresses) -> TcpStream {
        let stream = match self {
            Self::Direct => TcpStream::connect((addresses.opened, 443)).unwrap(),
            Self::Proxy(proxy) => through(proxy, OPENED_HOST, 443),
        };
        stream.set_nodelay(true).unwrap();
        stream
    }
}

/// `CONNECT` (RFC 9110 §9.3.6); ends the bench when it is refused.
fn through(proxy: SocketAddr, host: &str, port: u16) -> TcpStream {
    let mut stream = TcpStream::connect(proxy).unwrap();
    let head = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let mut byte = [0];
    while !answer.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        answer.push(byte[0]);
    }
    let text = String::from_utf8_lossy(&answer);
    assert!(text.split(' ').nth(1) == Some("200"), "{proxy}: {text}");
    stream
}

/// Bytes received over one tunnel, and the seconds it took.
pub(crate) fn bulk(route: Route, addresses: Addresses) -> (u64, f64) {
    let mut stream = route.tunnel(addresses);
    stream.write_all(&[SOURCE]).unwrap();
    let mut buffer = vec![0; 512 * 1024];
    let (begin, mut bytes) = (Instant::now(), 0);
    while begin.elapsed() < BULK {
        bytes += stream.read(&mut buffer).unwrap() as u64;
    }
    (bytes, begin.elapsed().as_secs_f64())
}

/// Microseconds from nothing to the first byte back, sorted; one after the other.
pub(crate) fn connects(route: Route, addresses: Addresses) -> Vec<f64> {
    let mut all: Vec<f64> = (0..LATENCY_CONNECTIONS)
        .map(|_| first_byte(route, addresses).as_secs_f64() * 1e6)
        .collect();
    all.sort_by(f64::total_cmp);
    all
}

/// How long the first byte took. Returns once the server has closed.
fn first_byte(route: Route, addresses: Addresses) -> Duration {
    let begin = Instant::now();
    let mut stream = route.tunnel(addresses);
    stream.write_all(&[ONCE]).unwrap();
    stream.read_exact(&mut [0]).unwrap();
    let took = begin.elapsed();
    drop(stream.read(&mut [0]));
    took
}

/// Connections a second by clients that do nothing else.
pub(crate) fn busy(route: Route, addresses: Addresses) -> f64 {
    let made = AtomicU64::new(0);
    let begin = Instant::now();
    let one_after_the_other = || {
        while begin.elapsed() < BUSY {
            first_byte(route, addresses);
            made.fetch_add(1, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..BUSY_CLIENTS {
            scope.spawn(one_after_the_other);
        }
    });
    to_f64(made.into_inner()) / begin.elapsed().as_secs_f64()
}

/// Tunnels that carried a byte and are silent now.
pub(crate) fn silent(route: Route, addresses: Addresses, tunnels: usize) -> Vec<TcpStream> {
    (0..tunnels)
        .map(|_| {
            let mut stream = route.tunnel(addresses);
            stream.write_all(&[ECHO]).unwrap();
            stream.read_exact(&mut [0]).unwrap();
            stream
        })
        .collect()
}

/// Requests over one kept connection: how many, and the seconds they took.
pub(crate) async fn requests(
    client: &Client,
    route: Route,
    addresses: Addresses,
    authorization: &str,
) -> (u64, f64) {
    let stream = route.to_opened(addresses);
    stream.set_nonblocking(true).unwrap();
    let stream = tokio::net::TcpStream::from_std(stream).unwrap();
    let stream = client.tls(stream, OPENED_HOST, &["http/1.1"]).await;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream.unwrap()))
        .await
        .unwrap();
    let connection = tokio::spawn(connection);
    let (begin, mut answered) = (Instant::now(), 0);
    while begin.elapsed() < REQUESTS {
        let request = http::Request::get(format!("/bytes/{PAGE_BYTES}"))
            .header("host", OPENED_HOST)
            .header("authorization", authorization)
            .body(Empty::<bytes::Bytes>::new())
            .unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.status(), 200);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body.len(), PAGE_BYTES);
        answered += 1;
    }
    let seconds = begin.elapsed().as_secs_f64();
    connection.abort();
    (answered, seconds)
}
