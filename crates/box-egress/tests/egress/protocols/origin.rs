//! Hosts of a test's own: what they answer.

use crate::world::SECRET;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use box_fakes::rig::{Handler, PeerStream};
use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::ext::Protocol;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};

/// A first line and headers.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) line: String,
    headers: Vec<(String, String)>,
    /// As they came.
    pub(crate) text: String,
}

impl Head {
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let mut own = self.headers.iter().filter(|(own, _)| own == name);
        own.next().map(|(_, value)| value.as_str())
    }
}

/// Reads a head and nothing behind it.
pub(crate) async fn head_of(stream: &mut (impl AsyncRead + Unpin)) -> Head {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => bytes.push(byte),
            Err(_) => break,
        }
    }
    let text = String::from_utf8(bytes).unwrap();
    let mut lines = text.lines();
    let line = lines.next().unwrap_or_default().to_owned();
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
    Head {
        line,
        headers: headers.collect(),
        text: text.clone(),
    }
}

/// RFC 6455 §4.2.2.
pub(crate) fn accept_for(key: &str) -> String {
    let text = format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    let algorithm = &ring::digest::SHA1_FOR_LEGACY_USE_ONLY;
    STANDARD.encode(ring::digest::digest(algorithm, text.as_bytes()))
}

/// Answers every request of a connection with what `answer` makes of it.
pub(crate) async fn serve<F, Doing>(stream: PeerStream, answer: F)
where
    F: Fn(Request<Incoming>) -> Doing + Send + Sync + 'static,
    Doing: Future<Output = String> + Send + 'static,
{
    let answer = Arc::new(answer);
    let service = service_fn(move |request| {
        let text = answer(request);
        async move { Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(text.await)))) }
    });
    let server = auto::Builder::new(TokioExecutor::new());
    // How a client leaves is its own affair.
    drop(server.serve_connection(TokioIo::new(stream), service).await);
}

/// Says what it was asked, in one line.
pub(crate) fn served_by_hyper() -> Handler {
    Handler::new(|stream| {
        serve(stream, |request| async move {
            let (parts, body) = request.into_parts();
            let of_header = parts.headers.get(header::HOST);
            let authority = match parts.uri.authority() {
                Some(authority) => authority.to_string(),
                None => of_header
                    .map_or("", |host| host.to_str().unwrap())
                    .to_owned(),
            };
            let bearer = parts.headers[header::AUTHORIZATION]
                .to_str()
                .unwrap()
                .to_owned();
            let body = body.collect().await.unwrap().to_bytes();
            let (version, method, path) = (
                parts.version,
                parts.method,
                parts.uri.path_and_query().unwrap().clone(),
            );
            let body = String::from_utf8_lossy(&body);
            format!("{version:?} {method} {path} {authority} {bearer} {body}")
        })
    })
}

/// Joins every WebSocket over HTTP/2 (RFC 8441) and says back what comes.
pub(crate) fn echoes_over_http2() -> Handler {
    Handler::new(|stream| async move {
        let service = service_fn(|mut request: Request<Incoming>| async move {
            let protocol = request.extensions().get::<Protocol>();
            assert_eq!(protocol.map(Protocol::as_str), Some("websocket"));
            assert_eq!(
                request.headers()["authorization"],
                format!("Bearer {SECRET}")
            );
            for name in ["connection", "upgrade", "sec-websocket-key"] {
                assert!(!request.headers().contains_key(name), "{name}");
            }
            let joined = hyper::upgrade::on(&mut request);
            tokio::spawn(async move {
                let socket = TokioIo::new(joined.await.unwrap());
                let (mut from, mut to) = tokio::io::split(socket);
                drop(tokio::io::copy(&mut from, &mut to).await);
            });
            Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
        });
        let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
            .enable_connect_protocol()
            .serve_connection(TokioIo::new(stream), service);
        drop(server.await);
    })
}

/// Says the number of the connection a request came over.
pub(crate) fn says_which_connection() -> Handler {
    let count = Arc::new(AtomicU32::new(0));
    Handler::new(move |stream| {
        let number = count.fetch_add(1, Ordering::Relaxed);
        serve(stream, move |_| async move { number.to_string() })
    })
}

/// Says every byte of a request, body and framing included.
pub(crate) fn says_what_it_reads() -> Handler {
    Handler::new(|mut stream| async move {
        let head = head_of(&mut stream).await;
        let mut body = Vec::new();
        let length = head
            .value("content-length")
            .map(|text| text.parse().unwrap());
        let is_whole = |body: &[u8]| match length {
            Some(length) => body.len() >= length,
            None => head.value("transfer-encoding").is_none() || body.ends_with(b"0\r\n\r\n"),
        };
        while !is_whole(&body) {
            body.push(stream.read_u8().await.unwrap());
        }
        let said = [head.text.as_bytes(), &body].concat();
        // Of a type that is not looked through for the secret, so that the length holds.
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n\
             Content-Length: {}\r\n\r\n",
            said.len()
        );
        drop(stream.write_all(&[answer.as_bytes(), &said].concat()).await);
        // Kept open until the other side has it.
        drop(stream.read_u8().await);
    })
}
