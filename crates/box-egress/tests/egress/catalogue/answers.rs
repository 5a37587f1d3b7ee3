//! Groups G19 to G29 and what belongs to them: what the host with the credential answers. Whatever it
//! says, the box never sees the secret, in no spelling that a program reads without being told; an
//! answer that can be read in two ways is none; and nobody is asked in the host's place.

use super::DEADLINE;
use crate::client::{Client, Seen, request, send_http1, send_http2};
use crate::world::{PLACEHOLDER_A, SECRET, World, allow, bound};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use box_api::egress::Event;
use box_fakes::rig::{Handler, Peer};
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use std::io::Write as _;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const BEARER: (&str, &str) = (
    "authorization",
    "Bearer sk-ant-oat01-PLACEHOLDER-of-box-a-0000000000",
);

/// What becomes of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comes {
    /// With this status, and whole.
    Whole(u16),
    /// The same, and the owner is told that the secret came back.
    Scrubbed(u16),
    /// Broken off, and told.
    BrokenOff,
    /// An answer of ours: the host broke off, or said what is no answer.
    Ours(u16),
    /// Not whole; whether a status came first is the library's affair.
    NotWhole,
}

use Comes::{BrokenOff, NotWhole, Ours, Scrubbed, Whole};

struct Row {
    id: &'static str,
    says: fn() -> Vec<u8>,
    comes: Comes,
}

const fn row(id: &'static str, says: fn() -> Vec<u8>, comes: Comes) -> Row {
    Row { id, says, comes }
}

const ROWS: &[Row] = &[
    row("G20", || with_header("X-Echo", &bearer()), Scrubbed(200)),
    row("G20a", || text(&bearer()), Scrubbed(200)),
    row(
        "G20b",
        || text(&format!("{{\"a\":\"{SECRET}\",\"b\":\"{SECRET}\"}}")),
        Scrubbed(200),
    ),
    row("G20c", || text(&STANDARD.encode(SECRET)), Scrubbed(200)),
    row(
        "G20d",
        || text(&STANDARD.encode(format!("x-access-token:{SECRET}"))),
        Scrubbed(200),
    ),
    row(
        "G20e",
        || text(&URL_SAFE_NO_PAD.encode(format!("ab{SECRET}"))),
        Scrubbed(200),
    ),
    row("G20f", || text(&hex(SECRET)), Scrubbed(200)),
    row(
        "G20g",
        || text(&hex(SECRET).to_ascii_uppercase()),
        Scrubbed(200),
    ),
    row(
        "G20h",
        || chunked(&[&SECRET[..9], &SECRET[9..]]),
        Scrubbed(200),
    ),
    row(
        "G20i",
        || chunked(&SECRET.split_inclusive(|_| true).collect::<Vec<_>>()),
        Scrubbed(200),
    ),
    row("G20j", || coded("gzip", &gzip(SECRET)), BrokenOff),
    row("G20k", || coded("x-gzip", &gzip(&bearer())), BrokenOff),
    row("G20l", || coded("deflate", &deflate(SECRET)), BrokenOff),
    row(
        "G20m",
        || coded("gzip", &[gzip("first"), gzip(SECRET)].concat()),
        BrokenOff,
    ),
    row("G20n", || coded("gzip", &gzip("nothing of it")), Whole(200)),
    row(
        "G20o",
        || coded("identity", SECRET.as_bytes()),
        Scrubbed(200),
    ),
    row(
        "G20p",
        || with_header(&format!("X-{SECRET}"), "1"),
        Scrubbed(200),
    ),
    row(
        "G20q",
        || with_header("X-A", &STANDARD.encode(SECRET)),
        Scrubbed(200),
    ),
    row("G20r", || trailers(&format!("X-Sum: {SECRET}")), Whole(200)),
    row(
        "G20s",
        || b"HTTP/1.1 200 S3CRET-is-the-reason\r\nContent-Length: 0\r\n\r\n".to_vec(),
        Whole(200),
    ),
    row(
        "G20t",
        || status(401, &format!("WWW-Authenticate: Bearer realm=\"{SECRET}\"")),
        Scrubbed(401),
    ),
    row(
        "G20u",
        || status(500, &format!("X-Debug: {SECRET}")),
        Scrubbed(500),
    ),
    row("G20v", || status(404, "X-Nothing: 1"), Whole(404)),
    // A way elsewhere is the box's to take, and judged there.
    row(
        "G23",
        || status(302, "Location: http://evil.test/?x"),
        Whole(302),
    ),
    row(
        "G23a",
        || status(307, "Location: https://evil.test/"),
        Whole(307),
    ),
    row(
        "G23b",
        || status(308, &format!("Location: https://evil.test/?token={SECRET}")),
        Scrubbed(308),
    ),
    row(
        "G24",
        || with_header("Link", &format!("<https://x.test/?{SECRET}>; rel=next")),
        Scrubbed(200),
    ),
    row(
        "G24a",
        || with_header("Refresh", &format!("0; url=/{SECRET}")),
        Scrubbed(200),
    ),
    row(
        "G24b",
        || with_header("Set-Cookie", &format!("__cf_bm={SECRET}; Path=/")),
        Scrubbed(200),
    ),
    row(
        "G24c",
        || with_header("Set-Cookie", "session=of-the-owner; Path=/"),
        Whole(200),
    ),
    // Other ways to the host, other protocols, words that are ours alone.
    row(
        "G30",
        || with_header("Alt-Svc", "h3=\":443\"; ma=86400"),
        Whole(200),
    ),
    row(
        "G30a",
        || with_header("Alt-Svc", "h2=\"evil.test:443\""),
        Whole(200),
    ),
    row(
        "G30b",
        || with_header("X-Box-Egress", "not_listed"),
        Whole(200),
    ),
    row("G30c", || with_header("Upgrade", "h2c"), Whole(200)),
    row(
        "G30d",
        || with_header("Proxy-Authenticate", "Basic"),
        Whole(200),
    ),
    row(
        "G30e",
        || with_header("Connection", "X-Hop\r\nX-Hop: 1"),
        Whole(200),
    ),
    row(
        "G30f",
        || {
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"
                .to_vec()
        },
        Ours(502),
    ),
    row("G30g", || early(&format!("Link: <{SECRET}>")), Whole(200)),
    // A host that dies on the way, or stutters.
    row("G25", Vec::new, Ours(502)),
    row(
        "G25a",
        || format!("HTTP/1.1 200 OK\r\nX-Half: {SECRET}").into_bytes(),
        Ours(502),
    ),
    row(
        "G25b",
        || format!("HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{SECRET}").into_bytes(),
        NotWhole,
    ),
    row(
        "G25c",
        || b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel".to_vec(),
        NotWhole,
    ),
    row(
        "G25d",
        || b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".to_vec(),
        NotWhole,
    ),
    row(
        "G25e",
        || format!("{SECRET}\r\n\r\n").into_bytes(),
        Ours(502),
    ),
    row(
        "G25f",
        || format!("HTTP/9.9 200 {SECRET}\r\n\r\n").into_bytes(),
        Ours(502),
    ),
    row("G25g", || b"HTTP/1.1 99 x\r\n\r\n".to_vec(), Ours(502)),
    row(
        "G25h",
        || format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "a".repeat(500_000)).into_bytes(),
        Ours(502),
    ),
    row(
        "G25i",
        || format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(500)).into_bytes(),
        Ours(502),
    ),
    row(
        "G25j",
        || b"HTTP/1.1 200 OK\r\nX\0y: z\r\nContent-Length: 0\r\n\r\n".to_vec(),
        Ours(502),
    ),
    // Two lengths.
    row(
        "G26",
        || b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!".to_vec(),
        Ours(502),
    ),
    row(
        "G26a",
        || b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello".to_vec(),
        Ours(502),
    ),
    row(
        "G26b",
        || b"HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\nhello!".to_vec(),
        Ours(502),
    ),
    row(
        "G26c",
        || {
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n5\r\nhello\r\n0\r\n\r\n".to_vec()
        },
        Whole(200),
    ),
];

fn bearer() -> String {
    format!("Bearer {SECRET}")
}

fn hex(text: &str) -> String {
    let digits: Vec<String> = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    digits.concat()
}

fn status(status: u16, line: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} X\r\n{line}\r\nContent-Length: 2\r\n\r\nok").into_bytes()
}

fn with_header(name: &str, value: &str) -> Vec<u8> {
    status(200, &format!("{name}: {value}"))
}

fn text(body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n{body}")
        .into_bytes()
}

fn chunked(pieces: &[&str]) -> Vec<u8> {
    let chunk = |piece: &&str| format!("{:x}\r\n{piece}\r\n", piece.len());
    let body: String = pieces.iter().map(chunk).collect();
    format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}0\r\n\r\n").into_bytes()
}

fn trailers(line: &str) -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked";
    format!("{head}\r\n\r\n2\r\nok\r\n0\r\n{line}\r\n\r\n").into_bytes()
}

fn early(line: &str) -> Vec<u8> {
    let hints = format!("HTTP/1.1 103 Early Hints\r\n{line}\r\n\r\n");
    [hints.into_bytes(), status(200, "X-Late: 1")].concat()
}

fn coded(coding: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: {coding}\r\n\
         Content-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn deflate(text: &str) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

/// The secret in any spelling above.
fn holds_secret(text: &str) -> bool {
    let encoded = |shift: usize| {
        let all = STANDARD.encode(format!("{}{SECRET}", "x".repeat(shift)));
        // Without the characters that depend on what stands around it.
        all[4..all.len() - 4].to_owned()
    };
    let spellings = [
        SECRET.to_owned(),
        hex(SECRET),
        hex(SECRET).to_ascii_uppercase(),
    ];
    let spellings = spellings.into_iter().chain((0..3).map(encoded));
    let lower = text.to_ascii_lowercase();
    spellings
        .into_iter()
        .any(|spelling| text.contains(&spelling))
        || lower.contains(&SECRET.to_ascii_lowercase())
}

fn is_as_wanted(comes: Comes, got: &Result<Seen, String>) -> bool {
    match (comes, got) {
        (Whole(status) | Scrubbed(status), Ok(seen)) => {
            seen.status == status && seen.reason().is_empty()
        }
        (Ours(status), Ok(seen)) => seen.status == status && !seen.reason().is_empty(),
        (BrokenOff | NotWhole, got) => got.is_err(),
        (Whole(_) | Scrubbed(_) | Ours(_), Err(_)) => false,
    }
}

/// A host that reads a head, says this, and ends.
fn played(says: fn() -> Vec<u8>) -> Handler {
    Handler::new(move |mut stream| async move {
        let mut asked = Vec::new();
        while !asked.ends_with(b"\r\n\r\n") {
            match stream.read_u8().await {
                Ok(byte) => asked.push(byte),
                Err(_) => return,
            }
        }
        drop(stream.write_all(&says()).await);
        drop(stream.shutdown().await);
    })
}

/// Asks the host with the placeholder; what went wrong, in words.
async fn ask(client: Client, alpn: &str) -> Result<Seen, String> {
    let stream = client.connect("cred.test", 443).await;
    let stream = client.tls(stream, "cred.test", &[alpn]).await.unwrap();
    let seen = if alpn == "h2" {
        let mut get = request("GET", "cred.test", "https://cred.test/", &[BEARER]);
        get.headers_mut().remove("host");
        tokio::time::timeout(DEADLINE, send_http2(stream, get)).await
    } else {
        let get = request("GET", "cred.test", "/", &[BEARER]);
        tokio::time::timeout(DEADLINE, send_http1(stream, get)).await
    };
    seen.expect("no end").map_err(|error| format!("{error:?}"))
}

#[test]
fn what_a_host_answers_shows_no_secret_and_means_one_thing() {
    let mut world = World::start();
    let at = SocketAddr::new(world.rig.origin("cred.test").address, 443);
    world.rig.origin("evil.test");
    let inside = world.new_box(allow(&["cred.test", "evil.test"]), bound(PLACEHOLDER_A));
    let mut faults = Vec::new();
    for row in ROWS {
        let handler = played(row.says);
        world
            .rig
            .peer(at, Peer::tls("cred.test", &["http/1.1"], handler));
        for alpn in ["http/1.1", "h2"] {
            let got = inside.run(move |client| ask(client, alpn));
            let shown = format!("{got:?}");
            let id = row.id;
            if !is_as_wanted(row.comes, &got) {
                faults.push(format!(
                    "{id} over {alpn}: wanted {:?}, got {shown}",
                    row.comes
                ));
            }
            if holds_secret(&shown) || shown.contains("S3CRET") {
                faults.push(format!("{id} over {alpn}: the secret came back: {shown}"));
            }
            let headers = got.as_ref().map(|seen| &seen.headers);
            let came = |name: &&str| headers.is_ok_and(|headers| headers.contains_key(*name));
            let gone = ["alt-svc", "upgrade", "proxy-authenticate", "x-hop"];
            for name in gone.into_iter().filter(came) {
                faults.push(format!("{id} over {alpn}: `{name}` came through"));
            }
            if got.is_ok() && shown.contains("of-the-owner") {
                faults.push(format!("{id} over {alpn}: a session came through"));
            }
            if matches!(row.comes, Scrubbed(_) | BrokenOff) {
                let told = world.host.event(|event| match event {
                    Event::SecretReflected { host, .. } => Some(host.to_string()),
                    _ => None,
                });
                assert_eq!(told, "cred.test", "{id}");
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert_eq!(
        world.rig.requests("evil.test").len(),
        0,
        "nobody was followed"
    );
    let secret = SECRET.as_bytes();
    for text in [&world.host.heard, &world.log()] {
        assert!(!text.windows(secret.len()).any(|part| part == secret));
    }
}
