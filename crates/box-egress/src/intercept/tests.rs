//! Protocols that change under way, and answers that come piece by piece, through one intercepted
//! connection. Both ends are sockets of a network namespace of the test's own.

use super::*;
use crate::intercept::grant::Credential;
use crate::intercept::leaf::Minter;
use crate::policy::{self, Settings};
use crate::secret::Secret;
use crate::testing::{Fixture, configured, enter_own_network, provider, trusting};
use box_api::egress::{Binding, Carriage, CredentialSpec, HostName, HostPattern, Policy};
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Empty;
use hyper::client::conn::http2;
use hyper::ext::Protocol;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use rustls::RootCertStore;
use rustls_pki_types::ServerName;
use std::net::Ipv4Addr;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

type HostEnd = tokio_rustls::server::TlsStream<TcpStream>;

const HOST: &str = "cred.test";
const PLACEHOLDER: &str = "sk-ant-oat01-PLACEHOLDER";
/// As long as the placeholder, so that lengths hold.
const SECRET: &str = "sk-ant-oat01-S3CRETxxxxx";

/// A CA that signs for the host and for the box: one is enough here.
struct Authority {
    minter: Arc<Minter>,
    roots: RootCertStore,
}

fn authority() -> Authority {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    let certificate = params.self_signed(&key).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.der().clone()).unwrap();
    let minter = Minter::new(&certificate.pem(), &key.serialize_pem(), provider()).unwrap();
    Authority {
        minter: Arc::new(minter),
        roots,
    }
}

fn fixture(authority: &Authority) -> (Fixture, Allowed) {
    let host = HostName::parse(HOST).unwrap();
    let allow = vec![HostPattern::parse(HOST).unwrap()];
    let hosts = vec![host.clone()];
    let binding = Binding {
        placeholder: PLACEHOLDER.into(),
        credential: "c".into(),
        hosts: hosts.clone(),
        github: None,
    };
    let settings = Settings {
        policy: Policy {
            allow,
            ..Policy::nothing()
        },
        bindings: vec![binding],
        logins: login::book::BoxLogins::default(),
    };
    let allowed = policy::admit(&settings, &host, 443).unwrap();
    let spec = CredentialSpec {
        id: "c".into(),
        kind: "x".into(),
        hosts,
        carried: vec![Carriage::Bearer],
    };
    let credential = Credential {
        spec,
        secret: Some(Secret::new(SECRET.as_bytes())),
    };
    let configured = configured(&authority.roots, Some(Arc::clone(&authority.minter)));
    (
        Fixture::new(settings, Some(configured), vec![credential]),
        allowed,
    )
}

async fn connected() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let socket = TcpSocket::new_v4().unwrap();
    let outer = socket
        .connect(listener.local_addr().unwrap())
        .await
        .unwrap();
    (outer, listener.accept().await.unwrap().0)
}

/// The box's end of one intercepted connection, and the host's end, which is there once the
/// first request is on its way. The host speaks HTTP/1.1.
async fn intercepted(alpn: &str) -> (TlsStream<TcpStream>, JoinHandle<HostEnd>) {
    let authority = authority();
    let (fixture, allowed) = fixture(&authority);
    let (in_box, client) = connected().await;
    let (seed, at_host) = connected().await;
    let ctx = Arc::clone(&fixture.ctx);
    tokio::spawn(async move {
        let client = Rewound::new(Bytes::new(), client);
        let end = intercept(ctx, allowed, client, Some(seed)).await;
        drop(fixture);
        assert_eq!(end, Ok(()));
    });
    let leaf = authority
        .minter
        .config(&HostName::parse(HOST).unwrap(), Purpose::Host)
        .await;
    let mut leaf = rustls::ServerConfig::clone(&*leaf.unwrap());
    leaf.alpn_protocols = vec![b"http/1.1".to_vec()];
    let host = TlsAcceptor::from(Arc::new(leaf)).accept(at_host);
    let host = tokio::spawn(async move { host.await.unwrap() });
    let name = ServerName::try_from(HOST).unwrap();
    let connector = TlsConnector::from(trusting(&authority.roots, &[alpn]));
    (connector.connect(name, in_box).await.unwrap(), host)
}

async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

async fn expect(stream: &mut (impl AsyncRead + Unpin), bytes: &[u8]) {
    let mut got = vec![0; bytes.len()];
    stream.read_exact(&mut got).await.unwrap();
    assert_eq!(got, bytes);
}

fn websocket_request(token: &str) -> String {
    format!(
        "GET /ws HTTP/1.1\r\nHost: {HOST}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\
         Authorization: Bearer {token}\r\n\r\n"
    )
}

/// What a host answers to this handshake (RFC 6455 §4.2.2).
fn switching(asked: &str) -> String {
    let key = asked.split("sec-websocket-key: ").nth(1).unwrap();
    let key = key.split("\r\n").next().unwrap();
    let text = format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    let digest = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes());
    let proof = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, digest);
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Accept: {proof}\r\n\r\n"
    )
}

fn run<F: Future<Output = ()>>(test: F) {
    enter_own_network();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let deadline = std::time::Duration::from_secs(20);
    runtime.block_on(async { timeout(deadline, test).await.unwrap() });
}

#[test]
fn websocket_over_http1_goes_both_ways_with_the_real_token() {
    run(async {
        let (mut in_box, host) = intercepted("http/1.1").await;
        in_box
            .write_all(websocket_request(PLACEHOLDER).as_bytes())
            .await
            .unwrap();
        let mut host = host.await.unwrap();
        let asked = read_head(&mut host).await;
        assert!(
            asked.contains(&format!("authorization: Bearer {SECRET}\r\n")),
            "{asked}"
        );
        assert!(asked.contains("upgrade: websocket\r\n"), "{asked}");
        assert!(
            asked.contains("sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"),
            "{asked}"
        );
        host.write_all(switching(&asked).as_bytes()).await.unwrap();
        let answer = read_head(&mut in_box).await;
        assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
        assert!(
            answer.contains("sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"),
            "{answer}"
        );
        in_box.write_all(b"\x81\x04ping").await.unwrap();
        expect(&mut host, b"\x81\x04ping").await;
        host.write_all(b"\x81\x04pong").await.unwrap();
        expect(&mut in_box, b"\x81\x04pong").await;
    });
}

#[test]
fn websocket_over_http2_becomes_one_over_http1() {
    run(async {
        let (in_box, host) = intercepted("h2").await;
        let io = TokioIo::new(in_box);
        let handshake = http2::handshake(TokioExecutor::new(), io);
        let (mut sender, connection) = handshake.await.unwrap();
        // Until our settings have come, the client does not know that it may.
        while !connection.is_extended_connect_protocol_enabled() {
            tokio::task::yield_now().await;
        }
        tokio::spawn(connection);
        let request = Request::connect(format!("https://{HOST}/ws"))
            .extension(Protocol::from_static("websocket"))
            .header("authorization", format!("Bearer {PLACEHOLDER}"))
            .header("sec-websocket-version", "13")
            .body(Empty::<Bytes>::new())
            .unwrap();
        let answer = tokio::spawn(sender.send_request(request));
        let mut host = host.await.unwrap();
        let asked = read_head(&mut host).await;
        assert!(asked.starts_with("GET /ws HTTP/1.1\r\n"), "{asked}");
        assert!(
            asked.contains(&format!("authorization: Bearer {SECRET}\r\n")),
            "{asked}"
        );
        assert!(asked.contains("sec-websocket-key: "), "{asked}");
        host.write_all(switching(&asked).as_bytes()).await.unwrap();
        let answer = answer.await.unwrap().unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        let mut in_box = TokioIo::new(hyper::upgrade::on(answer).await.unwrap());
        in_box.write_all(b"\x81\x04ping").await.unwrap();
        expect(&mut host, b"\x81\x04ping").await;
        host.write_all(b"\x81\x04pong").await.unwrap();
        expect(&mut in_box, b"\x81\x04pong").await;
    });
}

#[test]
fn a_credential_comes_back_neither_beside_the_status_nor_as_an_image() {
    run(async {
        let (mut in_box, host) = intercepted("http/1.1").await;
        let request = format!(
            "GET /x HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {PLACEHOLDER}\r\n\r\n"
        );
        in_box.write_all(request.as_bytes()).await.unwrap();
        let mut host = host.await.unwrap();
        assert!(read_head(&mut host).await.contains(SECRET));
        let answer = format!(
            "HTTP/1.1 200 {SECRET}\r\nContent-Type: image/png\r\nX-{SECRET}: 1\r\n\
             Content-Length: {}\r\n\r\n{SECRET}",
            SECRET.len()
        );
        host.write_all(answer.as_bytes()).await.unwrap();
        let answer = read_head(&mut in_box).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(
            !answer.to_lowercase().contains(&SECRET.to_lowercase()),
            "{answer}"
        );
        expect(&mut in_box, PLACEHOLDER.as_bytes()).await;
    });
}

#[test]
fn websocket_with_a_foreign_token_does_not_reach_the_host() {
    run(async {
        let (mut in_box, host) = intercepted("http/1.1").await;
        in_box
            .write_all(websocket_request("sk-ant-attacker").as_bytes())
            .await
            .unwrap();
        let answer = read_head(&mut in_box).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
        assert!(
            answer.contains("x-box-egress: foreign_credential\r\n"),
            "{answer}"
        );
        assert!(!host.is_finished());
    });
}

#[test]
fn host_that_refuses_a_websocket_is_heard() {
    run(async {
        let (mut in_box, host) = intercepted("http/1.1").await;
        in_box
            .write_all(websocket_request(PLACEHOLDER).as_bytes())
            .await
            .unwrap();
        let mut host = host.await.unwrap();
        read_head(&mut host).await;
        let refusal = b"HTTP/1.1 426 Upgrade Required\r\nContent-Length: 2\r\n\r\nno";
        host.write_all(refusal).await.unwrap();
        let answer = read_head(&mut in_box).await;
        assert!(answer.starts_with("HTTP/1.1 426 "), "{answer}");
        expect(&mut in_box, b"no").await;
    });
}

#[test]
fn events_are_passed_on_one_by_one() {
    run(async {
        let (mut in_box, host) = intercepted("http/1.1").await;
        let request = format!("GET /events HTTP/1.1\r\nHost: {HOST}\r\n\r\n");
        in_box.write_all(request.as_bytes()).await.unwrap();
        let mut host = host.await.unwrap();
        read_head(&mut host).await;
        let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
            Transfer-Encoding: chunked\r\n\r\n";
        host.write_all(head).await.unwrap();
        let answer = read_head(&mut in_box).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        // The next event is sent only once this one has arrived.
        for event in [b"9\r\ndata: 1\n\n\r\n", b"9\r\ndata: 2\n\n\r\n"] {
            host.write_all(event).await.unwrap();
            expect(&mut in_box, event).await;
        }
    });
}

#[test]
fn body_that_breaks_off_at_the_host_breaks_off_in_the_box() {
    run(async {
        let (mut in_box, host) = intercepted("http/1.1").await;
        let request = format!("GET / HTTP/1.1\r\nHost: {HOST}\r\n\r\n");
        in_box.write_all(request.as_bytes()).await.unwrap();
        let mut host = host.await.unwrap();
        read_head(&mut host).await;
        host.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
            .await
            .unwrap();
        drop(host);
        read_head(&mut in_box).await;
        let mut rest = Vec::new();
        // An error or an end, but never ten bytes.
        drop(in_box.read_to_end(&mut rest).await);
        assert!(rest.len() < 10);
    });
}
