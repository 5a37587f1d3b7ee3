//! Requests of HTTP/1.1: what we and the HTTP library take the same bytes for.

use super::{Target, corpus, runtime};
use crate::http::gate::Gate;
use crate::http::head::{BodyLength, HEAD_BYTES_MAX, end_of_head, parse};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};

const WORDS: &[&[u8]] = &[
    b"\r\n",
    b"\n",
    b"\r",
    b"\r\n\r\n",
    b"\0",
    b" ",
    b"\t",
    b":",
    b": ",
    b"\x0b",
    b"\x7f",
    b"\xff",
    b"Content-Length: 5\r\n",
    b"Content-Length: 0\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding",
    b"chunked",
    b"identity",
    b"Host: ok.test\r\n",
    b"Host: evil.test\r\n",
    b"HTTP/1.1",
    b"HTTP/1.0",
    b"GET ",
    b"CONNECT ",
    b"POST ",
    b"0\r\n\r\n",
    b"5\r\nhello\r\n",
    b"http://",
    b"@",
    b"#",
    b"?",
    b"\\",
    b"%00",
    b"+",
    b"0x",
    b",",
    b";",
    b"Connection: close\r\n",
    b"Expect: 100-continue\r\n",
];

/// A request: method, target, header lines, how many bytes of body.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Read {
    method: String,
    target: String,
    hosts: usize,
    body: Vec<u8>,
}

/// What the HTTP library reads off these bytes, request after request.
async fn by_library(stream: impl AsyncRead + tokio::io::AsyncWrite + Unpin) -> Vec<Read> {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let service = service_fn(|request: Request<Incoming>| {
        let seen = Rc::clone(&seen);
        async move {
            let (parts, body) = request.into_parts();
            let place = seen.borrow().len();
            seen.borrow_mut().push(None);
            if let Ok(body) = body.collect().await {
                seen.borrow_mut()[place] = Some(Read {
                    method: parts.method.to_string(),
                    target: parts.uri.to_string(),
                    hosts: parts.headers.get_all("host").iter().count(),
                    body: body.to_bytes().to_vec(),
                });
            }
            Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
        }
    });
    let mut builder = http1::Builder::new();
    builder.half_close(true).pipeline_flush(true);
    // A broken request ends it.
    drop(
        builder
            .serve_connection(TokioIo::new(stream), service)
            .await,
    );
    seen.take().into_iter().flatten().collect()
}

/// What we read: request after request, as long as they are sound and whole.
fn by_us(mut text: &[u8]) -> Vec<Read> {
    let mut seen = Vec::new();
    while let Ok(Some(bytes)) = end_of_head(text, 0, HEAD_BYTES_MAX) {
        let Ok(head) = parse(&Bytes::copy_from_slice(text), bytes) else {
            break;
        };
        let rest = &text[bytes..];
        let Some((body, used)) = body_of(head.body_length(), rest) else {
            break;
        };
        seen.push(Read {
            method: head.method.clone(),
            target: head.target.clone(),
            hosts: usize::from(head.has("host")),
            body,
        });
        if head.has("upgrade") || head.method == "CONNECT" {
            break;
        }
        text = &rest[used..];
    }
    seen
}

fn body_of(length: BodyLength, text: &[u8]) -> Option<(Vec<u8>, usize)> {
    match length {
        BodyLength::Absent => Some((Vec::new(), 0)),
        BodyLength::Sized(bytes) => {
            let bytes = usize::try_from(bytes).ok()?;
            Some((text.get(..bytes)?.to_vec(), bytes))
        }
        BodyLength::Chunked => {
            let (mut body, mut at) = (Vec::new(), 0);
            loop {
                let line = text.get(at..)?.windows(2).position(|two| two == b"\r\n")?;
                let size = std::str::from_utf8(&text[at..at + line]).ok()?;
                let size = usize::from_str_radix(size, 16).ok()?;
                at += line + 2;
                if size == 0 {
                    break;
                }
                body.extend_from_slice(text.get(at..at.checked_add(size)?)?);
                at += size + 2;
            }
            while !text.get(at..)?.starts_with(b"\r\n") {
                at += text.get(at..)?.windows(2).position(|two| two == b"\r\n")? + 2;
            }
            Some((body, at + 2))
        }
    }
}

#[test]
fn library_reads_the_requests_that_we_read() {
    let runtime = runtime();
    let target = Target {
        seeds: corpus("heads"),
        words: WORDS,
    };
    let mut agreed = 0;
    target.run(|input, _| {
        let (near, mut far) = tokio::io::duplex(64 << 10);
        let theirs = runtime.block_on(async {
            far.write_all(input).await.unwrap();
            far.shutdown().await.unwrap();
            let read = async {
                let mut answers = Vec::new();
                drop(far.read_to_end(&mut answers).await);
            };
            tokio::join!(by_library(Gate::new(near)), read).0
        });
        // The request that stands for an unreadable one names no host and is refused for it.
        let theirs: Vec<Read> = theirs.into_iter().filter(|read| read.hosts > 0).collect();
        let ours: Vec<Read> = by_us(input)
            .into_iter()
            .filter(|read| read.hosts > 0)
            .collect();
        let shown = input.escape_ascii();
        assert!(theirs.len() <= ours.len(), "{theirs:?} {ours:?} {shown}");
        for (their, our) in theirs.iter().zip(&ours) {
            assert_eq!(
                (&their.method, &their.body),
                (&our.method, &our.body),
                "{shown}"
            );
            // The library takes a fragment away, and gives a bare authority a path.
            let target = our.target.split('#').next().unwrap_or_default();
            let same = their.target == target
                || their.target.trim_end_matches('/') == target
                || their.target.eq_ignore_ascii_case(target)
                || their.target.to_ascii_lowercase().trim_end_matches('/')
                    == target.to_ascii_lowercase();
            let same = same || their.target.replacen("/?", "?", 1) == target;
            assert!(same, "{their:?} {our:?} {shown}");
            agreed += 1;
        }
    });
    assert!(agreed > 0, "no request was read by both");
}
