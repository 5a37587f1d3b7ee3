//! Group F: frames of HTTP/2 inside TLS that was opened. Heads are written by hand, as literals
//! without an index (RFC 7541 §6.2.2), since no library would send them.

use super::Ends::{Broken, Passes, Refused};
use super::Sends::Frames;
use super::{Ends, Row, row};
use box_api::egress::Reason;

const MALFORMED: Ends = Refused(400, Reason::Malformed);
const METHOD: Ends = Refused(405, Reason::Method);
const OTHER_HOST: Ends = Refused(421, Reason::HostMismatch);
const FOREIGN: Ends = Refused(403, Reason::ForeignCredential);

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// An empty SETTINGS frame.
pub(crate) const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

type Field = (&'static str, &'static str);

const METHOD_GET: Field = (":method", "GET");
const SCHEME: Field = (":scheme", "https");
const PATH: Field = (":path", "/");
const AUTHORITY: Field = (":authority", "cred.test");

pub(crate) const ROWS: &[Row] = &[
    row("F0", Frames(|| get(&[])), Passes),
    row(
        "F0a",
        Frames(|| head(&[METHOD_GET, SCHEME, PATH, (":authority", "CRED.test.:443")])),
        Passes,
    ),
    row("F0b", Frames(|| get(&[("host", "cred.test")])), Passes),
    row("F0c", Frames(|| get(&[("te", "trailers")])), Passes),
    // Another host.
    row(
        "F1",
        Frames(|| head(&[METHOD_GET, SCHEME, PATH, (":authority", "evil.test")])),
        OTHER_HOST,
    ),
    row(
        "F1a",
        Frames(|| head(&[METHOD_GET, SCHEME, PATH, (":authority", "cred.test:8443")])),
        OTHER_HOST,
    ),
    row(
        "F1b",
        Frames(|| head(&[METHOD_GET, SCHEME, PATH, (":authority", "ok.test")])),
        OTHER_HOST,
    ),
    row(
        "F1c",
        Frames(|| {
            head(&[
                METHOD_GET,
                SCHEME,
                PATH,
                (":authority", "evil.test"),
                ("host", "cred.test"),
            ])
        }),
        OTHER_HOST,
    ),
    row(
        "F1d",
        Frames(|| head(&[METHOD_GET, SCHEME, PATH, (":authority", "u@cred.test")])),
        MALFORMED,
    ),
    row(
        "F1e",
        Frames(|| {
            head(&[
                METHOD_GET,
                SCHEME,
                PATH,
                (":authority", "cred.test@evil.test"),
            ])
        }),
        MALFORMED,
    ),
    row(
        "F1f",
        Frames(|| head(&[METHOD_GET, SCHEME, PATH, (":authority", "")])),
        Broken,
    ),
    row(
        "F1g",
        Frames(|| head(&[METHOD_GET, SCHEME, PATH, (":authority", "cred.test/x")])),
        Broken,
    ),
    row(
        "F1h",
        Frames(|| {
            head(&[
                METHOD_GET,
                SCHEME,
                PATH,
                (":authority", "cred.test evil.test"),
            ])
        }),
        Broken,
    ),
    row("F2", Frames(|| get(&[("host", "evil.test")])), OTHER_HOST),
    row(
        "F2a",
        Frames(|| get(&[("host", "cred.test"), ("host", "cred.test")])),
        MALFORMED,
    ),
    row(
        "F2b",
        Frames(|| get(&[("host", "cred.test"), ("host", "evil.test")])),
        MALFORMED,
    ),
    row(
        "F2c",
        Frames(|| get(&[("host", "cred.test@evil.test")])),
        MALFORMED,
    ),
    row(
        "F2d",
        Frames(|| head(&[METHOD_GET, SCHEME, PATH, ("host", "cred.test")])),
        MALFORMED,
    ),
    // Pseudo-headers twice, missing, late, unknown.
    row(
        "F3",
        Frames(|| {
            head(&[
                METHOD_GET,
                SCHEME,
                PATH,
                AUTHORITY,
                (":authority", "evil.test"),
            ])
        }),
        Broken,
    ),
    row(
        "F3a",
        Frames(|| head(&[METHOD_GET, SCHEME, PATH, (":path", "/x"), AUTHORITY])),
        Broken,
    ),
    row("F3b", Frames(|| head(&[SCHEME, PATH, AUTHORITY])), Broken),
    row(
        "F3c",
        Frames(|| head(&[METHOD_GET, SCHEME, AUTHORITY])),
        Broken,
    ),
    row(
        "F3d",
        Frames(|| head(&[METHOD_GET, SCHEME, PATH, ("x", "y"), AUTHORITY])),
        Broken,
    ),
    row(
        "F3e",
        Frames(|| head(&[METHOD_GET, SCHEME, PATH, AUTHORITY, (":x", "y")])),
        Broken,
    ),
    row(
        "F3f",
        Frames(|| head(&[METHOD_GET, SCHEME, PATH, AUTHORITY, (":status", "200")])),
        Broken,
    ),
    row(
        "F3g",
        Frames(|| head(&[METHOD_GET, PATH, AUTHORITY])),
        Broken,
    ),
    row(
        "F3h",
        Frames(|| head(&[METHOD_GET, (":scheme", "ftp"), PATH, AUTHORITY])),
        MALFORMED,
    ),
    row(
        "F3i",
        Frames(|| head(&[("GET", "x"), SCHEME, PATH, AUTHORITY])),
        Broken,
    ),
    row(
        "F3j",
        Frames(|| head(&[(":method", "G T"), SCHEME, PATH, AUTHORITY])),
        Broken,
    ),
    row(
        "F3k",
        Frames(|| head(&[(":method", ""), SCHEME, PATH, AUTHORITY])),
        Broken,
    ),
    // What would end a line, or a request, on a connection that speaks HTTP/1.1.
    row(
        "F4",
        Frames(|| get(&[("x", "a\r\nAuthorization: Bearer attacker")])),
        Broken,
    ),
    row("F4a", Frames(|| get(&[("x", "a\nb")])), Broken),
    row("F4b", Frames(|| get(&[("x", "a\0b")])), Broken),
    row("F4c", Frames(|| get(&[("X-Api-Key", "attacker")])), Broken),
    row("F4d", Frames(|| get(&[("x:y", "z")])), Broken),
    row("F4e", Frames(|| get(&[("x y", "z")])), Broken),
    row("F4f", Frames(|| get(&[("", "z")])), Broken),
    row("F4g", Frames(|| get(&[("connection", "close")])), Broken),
    row(
        "F4h",
        Frames(|| get(&[("transfer-encoding", "chunked")])),
        Broken,
    ),
    row("F4i", Frames(|| get(&[("te", "gzip")])), Broken),
    row("F4j", Frames(|| get(&[("upgrade", "websocket")])), Broken),
    row("F4k", Frames(|| get(&[("keep-alive", "5")])), Broken),
    row(
        "F4l",
        Frames(|| get(&[("proxy-connection", "keep-alive")])),
        Broken,
    ),
    row("F4m", Frames(|| get(&[("x\r\ny", "z")])), Broken),
    row(
        "F4n",
        Frames(|| {
            head(&[
                METHOD_GET,
                SCHEME,
                (":path", "/ HTTP/1.1\r\nHost: evil.test\r\n\r\n"),
                AUTHORITY,
            ])
        }),
        Broken,
    ),
    row(
        "F4o",
        Frames(|| head(&[METHOD_GET, SCHEME, (":path", "/a b"), AUTHORITY])),
        Broken,
    ),
    row(
        "F4p",
        Frames(|| head(&[METHOD_GET, SCHEME, (":path", "evil.test/"), AUTHORITY])),
        Broken,
    ),
    row(
        "F4q",
        Frames(|| {
            head(&[
                METHOD_GET,
                SCHEME,
                (":path", "http://evil.test/"),
                AUTHORITY,
            ])
        }),
        Broken,
    ),
    row(
        "F4r",
        Frames(|| head(&[METHOD_GET, SCHEME, (":path", "*"), AUTHORITY])),
        MALFORMED,
    ),
    row(
        "F4s",
        Frames(|| head(&[METHOD_GET, SCHEME, (":path", "@evil.test/"), AUTHORITY])),
        Broken,
    ),
    row(
        "F4t",
        Frames(|| head(&[METHOD_GET, SCHEME, (":path", ""), AUTHORITY])),
        Broken,
    ),
    row(
        "F4u",
        Frames(|| head(&[METHOD_GET, SCHEME, (":path", "//evil.test/"), AUTHORITY])),
        Passes,
    ),
    row(
        "F4v",
        Frames(|| head(&[(":method", "OPTIONS"), SCHEME, (":path", "*"), AUTHORITY])),
        Passes,
    ),
    row(
        "F4w",
        Frames(|| head(&[(":method", "TRACE"), SCHEME, PATH, AUTHORITY])),
        METHOD,
    ),
    // Tunnels.
    row(
        "F5",
        Frames(|| head(&[(":method", "CONNECT"), (":authority", "evil.test:443")])),
        OTHER_HOST,
    ),
    row(
        "F5a",
        Frames(|| head(&[(":method", "CONNECT"), (":authority", "cred.test:443")])),
        METHOD,
    ),
    row("F5b", Frames(|| extended("connect-udp")), METHOD),
    row("F5c", Frames(|| extended("connect-ip")), METHOD),
    row("F5d", Frames(|| extended("webtransport")), METHOD),
    row("F5e", Frames(|| extended("WebSocket")), METHOD),
    row("F5f", Frames(|| extended("tcp")), METHOD),
    row(
        "F5g",
        Frames(|| {
            head(&[
                METHOD_GET,
                (":protocol", "websocket"),
                SCHEME,
                PATH,
                AUTHORITY,
            ])
        }),
        Broken,
    ),
    row(
        "F5h",
        Frames(|| {
            head(&[
                (":method", "CONNECT"),
                (":protocol", "websocket"),
                SCHEME,
                PATH,
                (":authority", "evil.test"),
            ])
        }),
        OTHER_HOST,
    ),
    row(
        "F5i",
        Frames(|| {
            head(&[
                (":method", "CONNECT"),
                (":protocol", "websocket"),
                SCHEME,
                PATH,
                AUTHORITY,
                ("authorization", "Bearer attacker"),
            ])
        }),
        FOREIGN,
    ),
    // Crumbs of a cookie, a credential in one of them.
    row(
        "F6",
        Frames(|| get(&[("cookie", "__cf_bm=1"), ("cookie", "session=attacker")])),
        FOREIGN,
    ),
    row("F6a", Frames(|| get(&[("x-api-key", "attacker")])), FOREIGN),
    row("F6b", Frames(|| get(&[("x_api_key", "attacker")])), FOREIGN),
    row(
        "F6c",
        Frames(|| get(&[("authorization", "Bearer a"), ("authorization", "Bearer b")])),
        FOREIGN,
    ),
    // Lengths that are not the body's.
    row("F7", Frames(|| get(&[("content-length", "5")])), Broken),
    row(
        "F7a",
        Frames(|| get(&[("content-length", "5"), ("content-length", "6")])),
        Broken,
    ),
    row("F7b", Frames(|| get(&[("content-length", "+0")])), Broken),
    // Frames that are none, or too many.
    row("F10", Frames(|| frame(DATA, END_STREAM, 1, b"x")), Broken),
    row(
        "F10a",
        Frames(|| frame(CONTINUATION, END_HEADERS, 1, b"")),
        Broken,
    ),
    row(
        "F10b",
        Frames(|| {
            frame(
                HEADERS,
                END_STREAM | END_HEADERS,
                2,
                &fields(&[METHOD_GET, SCHEME, PATH, AUTHORITY]),
            )
        }),
        Broken,
    ),
    row(
        "F10c",
        Frames(|| {
            frame(
                HEADERS,
                END_STREAM | END_HEADERS,
                1,
                &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            )
        }),
        Broken,
    ),
    row(
        "F10d",
        Frames(|| {
            frame(
                HEADERS,
                END_STREAM | END_HEADERS,
                0,
                &fields(&[METHOD_GET, SCHEME, PATH, AUTHORITY]),
            )
        }),
        Broken,
    ),
    row("F10e", Frames(|| frame(0x4, 1, 0, b"x")), Broken),
    row("F10f", Frames(flood_of_continuations), Broken),
    row("F10g", Frames(|| vec![0xff; 64]), Broken),
    row("F10h", Frames(rapid_resets), Broken),
    row("F10i", Frames(|| frame(0x8, 0, 0, &[0, 0, 0, 0])), Broken),
    row(
        "F10j",
        Frames(|| b"GET / HTTP/1.1\r\nHost: cred.test\r\n\r\n".to_vec()),
        Broken,
    ),
    // Frames a client never sends, settings and windows that are none.
    row(
        "F10k",
        Frames(|| frame(0x5, END_HEADERS, 1, &[0, 0, 0, 2, 0x82])),
        Broken,
    ),
    row("F10l", Frames(|| frame(0x3, 0, 1, &[0, 0, 0, 8])), Broken),
    row(
        "F10m",
        Frames(|| frame(0x8, 0, 0, &0x7fff_ffff_u32.to_be_bytes())),
        Broken,
    ),
    row(
        "F10n",
        Frames(|| frame(0x4, 0, 0, &[0, 2, 0, 0, 0, 2])),
        Broken,
    ),
    row(
        "F10o",
        Frames(|| frame(0x4, 0, 0, &[0, 4, 0xff, 0xff, 0xff, 0xff])),
        Broken,
    ),
    row("F10p", Frames(|| frame(0x4, 0, 1, b"")), Broken),
    row("F10q", Frames(|| frame(0x6, 0, 0, b"short")), Broken),
    row(
        "F10r",
        Frames(|| {
            frame(
                HEADERS,
                END_STREAM | END_HEADERS,
                1,
                &[0x3f, 0xe1, 0xff, 0xff, 0x7f],
            )
        }),
        Broken,
    ),
    row(
        "F10s",
        Frames(|| frame(HEADERS, END_STREAM | END_HEADERS | 0x8, 1, &[0xff, 0x82])),
        Broken,
    ),
    row(
        "F10t",
        Frames(|| {
            [
                frame(HEADERS, END_STREAM, 1, &fields(&[METHOD_GET])),
                frame(DATA, 0, 1, b"x"),
            ]
            .concat()
        }),
        Broken,
    ),
    // A credential behind the body is no header, and goes nowhere.
    row(
        "F8",
        Frames(|| behind(&[("authorization", "Bearer attacker")])),
        Passes,
    ),
    row(
        "F8a",
        Frames(|| behind(&[(":authority", "evil.test")])),
        Passes,
    ),
    row("F8b", Frames(|| behind(&[("content-length", "9")])), Passes),
    // Hosts and paths in other clothes.
    row(
        "F1i",
        Frames(|| head(&[METHOD_GET, SCHEME, PATH, (":authority", "cred.test:0443")])),
        MALFORMED,
    ),
    row(
        "F1j",
        Frames(|| head(&[METHOD_GET, SCHEME, PATH, (":authority", "x.cred.test")])),
        OTHER_HOST,
    ),
    row(
        "F1k",
        Frames(|| head(&[METHOD_GET, SCHEME, PATH, (":authority", "[::1]")])),
        OTHER_HOST,
    ),
    row(
        "F1l",
        Frames(|| {
            head(&[
                METHOD_GET,
                SCHEME,
                PATH,
                (":authority", "cred.test%2eevil.test"),
            ])
        }),
        Broken,
    ),
    row(
        "F1m",
        Frames(|| get(&[("host", "cred.test:8443")])),
        OTHER_HOST,
    ),
    row(
        "F1n",
        Frames(|| {
            get(&[
                ("x-forwarded-host", "evil.test"),
                ("forwarded", "host=evil.test"),
            ])
        }),
        Passes,
    ),
    row("F5j", Frames(|| extended("h2c")), METHOD),
    row("F5k", Frames(|| extended("connect-ethernet")), METHOD),
    row(
        "F6d",
        Frames(|| get(&[("proxy-authorization", "Basic eDp5")])),
        FOREIGN,
    ),
    row(
        "F6e",
        Frames(|| {
            head(&[
                METHOD_GET,
                SCHEME,
                (":path", "/?access_token=attacker"),
                AUTHORITY,
            ])
        }),
        FOREIGN,
    ),
];

fn get(more: &[Field]) -> Vec<u8> {
    head(&[&[METHOD_GET, SCHEME, PATH, AUTHORITY], more].concat())
}

fn extended(protocol: &'static str) -> Vec<u8> {
    let connect = (":method", "CONNECT");
    head(&[connect, (":protocol", protocol), SCHEME, PATH, AUTHORITY])
}

/// A request without a body on the first stream.
fn head(own: &[Field]) -> Vec<u8> {
    frame(HEADERS, END_STREAM | END_HEADERS, 1, &fields(own))
}

/// A request whose body has trailers.
fn behind(own: &[Field]) -> Vec<u8> {
    let post = [(":method", "POST"), SCHEME, PATH, AUTHORITY];
    [
        frame(HEADERS, END_HEADERS, 1, &fields(&post)),
        frame(DATA, 0, 1, b"x"),
        frame(HEADERS, END_STREAM | END_HEADERS, 1, &fields(own)),
    ]
    .concat()
}

fn fields(own: &[Field]) -> Vec<u8> {
    let field = |(name, value): &Field| [vec![0], text(name), text(value)].concat();
    own.iter().flat_map(field).collect()
}

/// A string literal that is not compressed; its length has a prefix of seven bits (RFC 7541 §5.1).
fn text(text: &str) -> Vec<u8> {
    let length = text.len();
    let mut bytes = match u8::try_from(length) {
        Ok(short) if short < 127 => vec![short],
        _ => vec![127, u8::try_from(length - 127).unwrap()],
    };
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [length[1], length[2], length[3], kind, flags];
    [head.as_slice(), &stream.to_be_bytes(), payload].concat()
}

fn flood_of_continuations() -> Vec<u8> {
    let block = fields(&[(
        "x",
        "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy",
    )])
    .repeat(100);
    let first = frame(
        HEADERS,
        END_STREAM,
        1,
        &fields(&[METHOD_GET, SCHEME, PATH, AUTHORITY]),
    );
    [first, frame(CONTINUATION, 0, 1, &block).repeat(200)].concat()
}

fn rapid_resets() -> Vec<u8> {
    // Refused by the head's own authority, so that none of them reaches a host.
    let one = |stream: u32| {
        let fields = fields(&[METHOD_GET, SCHEME, PATH, (":path", "/twice"), AUTHORITY]);
        let open = frame(HEADERS, END_HEADERS, stream, &fields);
        [open, frame(3, 0, stream, &[0, 0, 0, 8])].concat()
    };
    (0..2_000).flat_map(|number| one(2 * number + 1)).collect()
}
