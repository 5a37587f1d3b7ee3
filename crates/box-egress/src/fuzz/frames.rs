//! Frames of HTTP/2, up to the seam where they become requests of HTTP/1.1: what is let through
//! has no byte that would end a line there.

use super::{Target, corpus, runtime};
use crate::http::body::Flow;
use crate::http::leash::Leash;
use crate::http::request::{Site, check};
use crate::http::serve::{Life, Speaks, serve};
use box_api::egress::HostName;
use http::{Request, Response};
use hyper::body::Incoming;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::io::AsyncWriteExt as _;

const WORDS: &[&[u8]] = &[
    b"\0\0\0\x04\0\0\0\0\0",
    b"\0\0\0\x01\x05\0\0\0\x01",
    b"\0\0\x04\x03\0\0\0\0\x01\0\0\0\x08",
    b"\r\n",
    b"\n",
    b"\0",
    b"\x82",
    b"\x84",
    b"\x87",
    b"\x0a:authority",
    b"\x09cred.test",
    b"\x09evil.test",
    b"\x05:path",
    b"\x01/",
    b"\x04host",
    b"\x0a/\r\nHost: x",
    b"\x7f",
    b"\xff",
];

const TURNS: u32 = 40;

/// Everything in it could stand in a head of HTTP/1.1.
fn is_clean(request: &Request<Incoming>) -> bool {
    let line_safe = |text: &[u8]| text.iter().all(|byte| *byte >= b' ' && *byte != 0x7f);
    let target = request
        .uri()
        .path_and_query()
        .map_or("/", |path| path.as_str());
    let value_safe = |text: &[u8]| !text.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0));
    let names = request.headers().keys().map(http::HeaderName::as_str);
    line_safe(target.as_bytes())
        && !target.contains(' ')
        && line_safe(request.method().as_str().as_bytes())
        && !request.method().as_str().contains(' ')
        && request
            .headers()
            .values()
            .all(|value| value_safe(value.as_bytes()))
        && names
            .into_iter()
            .all(|name| !name.contains([':', ' ', '\r', '\n']))
        && (target.starts_with('/') || target == "*")
}

async fn turns() {
    for _ in 0..TURNS {
        tokio::task::yield_now().await;
    }
}

#[test]
fn frames_that_pass_make_clean_requests() {
    let runtime = runtime();
    let target = Target {
        seeds: corpus("frames"),
        words: WORDS,
    };
    let passed = Arc::new(AtomicU32::new(0));
    let site = Site {
        host: HostName::parse("cred.test").unwrap(),
        port: 443,
    };
    target.run(|input, _| {
        let (near, mut far) = tokio::io::duplex(64 << 10);
        let (site, counted) = (site.clone(), Arc::clone(&passed));
        let shown = input.escape_ascii().to_string();
        let handler = move |request: Request<Incoming>| {
            if check(&request, &site).is_ok() {
                assert!(is_clean(&request), "{request:?} {shown}");
                counted.fetch_add(1, Ordering::Relaxed);
            }
            async { Response::new(Flow::empty()) }
        };
        runtime.block_on(async {
            let leash = Leash::new();
            far.write_all(input).await.unwrap();
            let life = Life::KeepAlive(Speaks::Http2);
            // Nothing is waited for but other tasks of this thread: a few turns lead to the end.
            tokio::select! {
                biased;
                () = serve(near, life, leash.end(), handler) => {}
                () = turns() => {}
            }
        });
    });
    assert!(passed.load(Ordering::Relaxed) > 0, "no request passed");
}
