//! Pumping between real sockets, in a network namespace of the test's own.

use super::*;
use std::net::Ipv4Addr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket};

/// Bytes whose place can be told.
fn pattern() -> impl Iterator<Item = u8> {
    (0..251).cycle()
}

/// Two connections with a pump between their inner ends; gives the outer ends.
async fn pumped() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let addr = listener.local_addr().unwrap();
    let connect = || async {
        let outer = TcpSocket::new_v4().unwrap().connect(addr).await.unwrap();
        (outer, listener.accept().await.unwrap().0)
    };
    let (client, inner_client) = connect().await;
    let (host, inner_host) = connect().await;
    tokio::spawn(async move { pump(&inner_client, &inner_host, &Tally::default()).await });
    (client, host)
}

fn in_own_network<F: Future<Output = ()>>(test: F) {
    crate::testing::enter_own_network();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(test);
}

#[test]
fn bytes_pass_both_ways() {
    in_own_network(async {
        let (mut client, mut host) = pumped().await;
        client.write_all(b"ping").await.unwrap();
        let mut four = [0; 4];
        host.read_exact(&mut four).await.unwrap();
        assert_eq!(&four, b"ping");
        host.write_all(b"pong").await.unwrap();
        client.read_exact(&mut four).await.unwrap();
        assert_eq!(&four, b"pong");
    });
}

#[test]
fn everything_arrives_after_the_client_closed_its_half() {
    in_own_network(async {
        const BYTES: usize = 8 << 20;
        let (mut client, mut host) = pumped().await;
        client.write_all(b"go").await.unwrap();
        client.shutdown().await.unwrap();
        let server = tokio::spawn(async move {
            let mut asked = Vec::new();
            host.read_to_end(&mut asked).await.unwrap();
            assert_eq!(asked, b"go");
            let answer: Vec<u8> = pattern().take(BYTES).collect();
            host.write_all(&answer).await.unwrap();
        });
        let mut got = Vec::new();
        client.read_to_end(&mut got).await.unwrap();
        server.await.unwrap();
        assert_eq!(got.len(), BYTES);
        assert!(
            got.iter()
                .zip(pattern())
                .all(|(byte, expected)| *byte == expected)
        );
    });
}

#[test]
fn broken_host_breaks_the_client() {
    in_own_network(async {
        let (mut client, host) = pumped().await;
        crate::socket::reset(host);
        let mut got = Vec::new();
        let end = client.read_to_end(&mut got).await;
        assert!(end.is_err() || got.is_empty());
    });
}
