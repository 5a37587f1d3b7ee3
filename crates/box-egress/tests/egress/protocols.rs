//! The protocols a host and a program in a box may speak, and what becomes of them on the way:
//! both ways in, through the process, to hosts that a test plays.

#[path = "protocols/origin.rs"]
mod origin;
#[path = "protocols/streams.rs"]
mod streams;
#[path = "protocols/weight.rs"]
mod weight;

use crate::client::{Client, Seen, request, send_http1, send_http2};
use crate::inside::Inside;
use crate::world::{PLACEHOLDER_A, SECRET, World, allow, bound};
use box_api::egress::Event;
use box_fakes::rig::{Handler, Peer};
use origin::{Head, accept_for, head_of, served_by_hyper};
use std::io::Write as _;
use std::net::SocketAddr;
use std::process::Command;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

const BEARER: &str = "Bearer sk-ant-oat01-PLACEHOLDER-of-box-a-0000000000";
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

/// A way in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Door {
    Transparent,
    Tunnel,
}

const DOORS: [Door; 2] = [Door::Transparent, Door::Tunnel];

impl Door {
    async fn open(self, client: &Client, host: &str, port: u16) -> TcpStream {
        match self {
            Self::Transparent => client.connect(host, port).await,
            Self::Tunnel => client.tunnel(&format!("{host}:{port}")).await.unwrap(),
        }
    }

    /// To the host with the credential, with this protocol agreed.
    async fn opened(self, client: &Client, alpn: &str) -> TlsStream<TcpStream> {
        let stream = self.open(client, "cred.test", 443).await;
        client.tls(stream, "cred.test", &[alpn]).await.unwrap()
    }
}

/// A world whose `cred.test` is played by `serve`, over TLS with these protocols.
fn played_by(alpn: &[&str], serve: Handler) -> (World, Inside) {
    let mut world = World::start();
    let origin = world.rig.origin("cred.test");
    let at = SocketAddr::new(origin.address, 443);
    world.rig.peer(at, Peer::tls("cred.test", alpn, serve));
    let inside = world.new_box(allow(&["cred.test", "ok.test"]), bound(PLACEHOLDER_A));
    (world, inside)
}

/// A request with a body, by the version the box speaks.
async fn posted(client: Client, door: Door, of_box: &'static str) -> Seen {
    let stream = door.opened(&client, of_box).await;
    let headers = [("authorization", BEARER), ("x-cookie-test", "1")];
    let is_second = of_box == "h2";
    let url = if is_second {
        "https://cred.test/v?x=1"
    } else {
        "/v?x=1"
    };
    let mut request = request("POST", "cred.test", url, &headers);
    *request.body_mut() = http_body_util::Full::from("body");
    if is_second {
        request.headers_mut().remove("host");
        return send_http2(stream, request).await.unwrap();
    }
    send_http1(stream, request).await.unwrap()
}

#[test]
fn both_versions_of_http_are_spoken_on_both_sides() {
    for of_host in ["http/1.1", "h2"] {
        let (_world, inside) = played_by(&[of_host], served_by_hyper());
        for (of_box, door) in ["http/1.1", "h2"]
            .into_iter()
            .flat_map(|v| DOORS.map(|d| (v, d)))
        {
            let seen = inside.run(move |client| posted(client, door, of_box));
            let version = match of_host {
                "h2" => "HTTP/2.0",
                _ => "HTTP/1.1",
            };
            let expected = format!("{version} POST /v?x=1 cred.test {BEARER} body");
            assert_eq!(
                (seen.status, seen.body),
                (200, expected),
                "{of_box} {door:?}"
            );
        }
    }
}

/// Reads a head, answers it with what `answer` makes of it, and says back what comes.
fn echo_after(answer: fn(&Head) -> String) -> Handler {
    Handler::new(move |mut stream| async move {
        let head = head_of(&mut stream).await;
        drop(stream.write_all(answer(&head).as_bytes()).await);
        let mut piece = [0; 4096];
        while let Ok(bytes @ 1..) = stream.read(&mut piece).await {
            drop(stream.write_all(&piece[..bytes]).await);
        }
    })
}

fn agrees(head: &Head) -> String {
    let wants = head.value("upgrade") == Some("websocket") && head.line == "GET /ws HTTP/1.1";
    let bearer = format!("Bearer {SECRET}");
    if !wants || head.value("authorization") != Some(bearer.as_str()) {
        return "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n".to_owned();
    }
    let proof = accept_for(head.value("sec-websocket-key").unwrap());
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Accept: {proof}\r\nSec-WebSocket-Protocol: chat\r\n\r\n"
    )
}

fn handshake() -> String {
    format!(
        "GET /ws HTTP/1.1\r\nHost: cred.test\r\nConnection: keep-alive, Upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Protocol: chat\r\nAuthorization: {BEARER}\r\n\r\n"
    )
}

#[test]
fn websocket_over_http1_passes_both_ways_in() {
    let (_world, inside) = played_by(&["h2", "http/1.1"], echo_after(agrees));
    for door in DOORS {
        let (head, echo) = inside.run(move |client| async move {
            let mut stream = door.opened(&client, "http/1.1").await;
            stream.write_all(handshake().as_bytes()).await.unwrap();
            let head = head_of(&mut stream).await;
            // A frame with a line end in it, and one that looks like a request.
            let frames = b"\x81\x02\n\n\x81\x10GET / HTTP/1.1\n\n\x88\x00";
            stream.write_all(frames).await.unwrap();
            let mut echo = vec![0; frames.len()];
            stream.read_exact(&mut echo).await.unwrap();
            (head, echo == frames)
        });
        assert_eq!(head.line, "HTTP/1.1 101 Switching Protocols");
        assert_eq!(head.value("sec-websocket-accept"), Some(&*accept_for(KEY)));
        assert_eq!(head.value("sec-websocket-protocol"), Some("chat"));
        assert!(echo, "{door:?}");
    }
}

#[test]
fn websocket_over_http2_is_translated_both_ways_in() {
    let (_world, inside) = played_by(&["h2", "http/1.1"], echo_after(agrees));
    for door in DOORS {
        let echo = inside.run(move |client| async move {
            let stream = door.opened(&client, "h2").await;
            let (head, mut socket) = streams::extended_connect(stream, BEARER).await;
            assert_eq!(head.status, 200);
            assert_eq!(head.headers["sec-websocket-protocol"], "chat");
            assert!(!head.headers.contains_key("sec-websocket-accept"));
            socket.write_all(b"\x81\x04ping").await.unwrap();
            let mut echo = [0; 6];
            socket.read_exact(&mut echo).await.unwrap();
            echo
        });
        assert_eq!(&echo, b"\x81\x04ping", "{door:?}");
    }
}

/// To a program it makes no difference what its host speaks.
#[test]
fn websocket_reaches_a_host_that_speaks_http2_alone() {
    let (world, inside) = played_by(&["h2"], origin::echoes_over_http2());
    for door in DOORS {
        let (head, echo) = inside.run(move |client| async move {
            let mut stream = door.opened(&client, "http/1.1").await;
            stream.write_all(handshake().as_bytes()).await.unwrap();
            let head = head_of(&mut stream).await;
            stream.write_all(b"\x81\x04ping").await.unwrap();
            let mut echo = [0; 6];
            stream.read_exact(&mut echo).await.unwrap();
            (head, echo)
        });
        assert_eq!(head.line, "HTTP/1.1 101 Switching Protocols", "{door:?}");
        assert_eq!(head.value("sec-websocket-accept"), Some(&*accept_for(KEY)));
        assert_eq!(&echo, b"\x81\x04ping", "{door:?}");
        let (status, echo) = inside.run(move |client| async move {
            let stream = door.opened(&client, "h2").await;
            let (head, mut socket) = streams::extended_connect(stream, BEARER).await;
            socket.write_all(b"\x81\x04pong").await.unwrap();
            let mut echo = [0; 6];
            socket.read_exact(&mut echo).await.unwrap();
            (head.status, echo)
        });
        assert_eq!((status.as_u16(), &echo), (200, b"\x81\x04pong"), "{door:?}");
    }
    assert!(!world.log().windows(6).any(|part| part == b"S3CRET"));
}

/// In frames as in bodies: it becomes a placeholder, and the owner hears of it.
#[test]
fn credential_in_frames_of_a_host_is_replaced_and_told() {
    let says = Handler::new(|mut stream| async move {
        let head = head_of(&mut stream).await;
        assert_eq!(
            head.value("sec-websocket-extensions"),
            None,
            "unread otherwise"
        );
        let (first, rest) = SECRET.split_at(20);
        let frame = |kind: u8, text: &str| {
            [&[kind, u8::try_from(text.len()).unwrap()], text.as_bytes()].concat()
        };
        let frames = [
            frame(0x81, &format!("you are {SECRET}!")),
            frame(0x01, first),
            frame(0x80, rest),
            frame(0x81, "the end"),
        ];
        drop(stream.write_all(agrees(&head).as_bytes()).await);
        for frame in frames {
            drop(stream.write_all(&frame).await);
        }
        drop(stream.read_u8().await);
    });
    let (mut world, inside) = played_by(&["http/1.1"], says);
    for alpn in ["http/1.1", "h2"] {
        let got = inside.run(move |client| async move {
            let stream = Door::Transparent.opened(&client, alpn).await;
            let mut got = Vec::new();
            if alpn == "h2" {
                let (_, mut socket) = streams::extended_connect(stream, BEARER).await;
                read_until(&mut socket, &mut got, b"the end").await;
            } else {
                let mut stream = stream;
                let asks = handshake().replace(
                    "Sec-WebSocket-Version",
                    "Sec-WebSocket-Extensions: permessage-deflate\r\nSec-WebSocket-Version",
                );
                stream.write_all(asks.as_bytes()).await.unwrap();
                read_until(&mut stream, &mut got, b"the end").await;
            }
            got
        });
        let text = String::from_utf8_lossy(&got).into_owned();
        assert!(!text.contains("S3CRET"), "{text}");
        assert!(text.contains("you are sk-ant-oat01-PLACEHOLDER"), "{text}");
        // A signal of each kind is told once in a while.
        if alpn == "http/1.1" {
            let host = world.host.event(|event| match event {
                Event::SecretReflected { host, .. } => Some(host.clone()),
                _ => None,
            });
            assert_eq!(host.as_str(), "cred.test");
        }
    }
}

async fn read_until(stream: &mut (impl AsyncRead + Unpin), got: &mut Vec<u8>, end: &[u8]) {
    while !got.ends_with(end) {
        got.push(stream.read_u8().await.unwrap());
    }
}

/// What is compressed cannot be replaced: the answer is broken off, and the owner hears of it.
#[test]
fn credential_in_a_compressed_answer_breaks_it_off() {
    let says = Handler::new(|mut stream| async move {
        let head = head_of(&mut stream).await;
        assert_eq!(
            head.value("accept-encoding"),
            Some("gzip"),
            "nothing unreadable"
        );
        let text = match head.line.as_str() {
            "GET /echo HTTP/1.1" => format!("{{\"token\":\"{SECRET}\"}}"),
            _ => "{\"token\":\"none\"}".to_owned(),
        };
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        let body = gzip.finish().unwrap();
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        drop(stream.write_all(&[answer.as_bytes(), &body].concat()).await);
        drop(stream.read_u8().await);
    });
    let (mut world, inside) = played_by(&["http/1.1"], says);
    for (path, is_whole) in [("/", true), ("/echo", false)] {
        let got = inside.run(move |client| async move {
            let stream = Door::Transparent.opened(&client, "http/1.1").await;
            let headers = [
                ("authorization", BEARER),
                ("accept-encoding", "br, gzip, zstd"),
            ];
            let get = request("GET", "cred.test", path, &headers);
            send_http1(stream, get).await
        });
        assert_eq!(got.is_ok(), is_whole, "{path}: {got:?}");
    }
    let host = world.host.event(|event| match event {
        Event::SecretReflected { host, .. } => Some(host.clone()),
        _ => None,
    });
    assert_eq!(host.as_str(), "cred.test");
}

/// A host that says 101 without having read a handshake would read what follows as requests,
/// which nobody judged.
#[test]
fn host_that_does_not_prove_the_handshake_is_not_joined() {
    let wrong = |_: &Head| {
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Accept: YWNjZXB0\r\n\r\n"
            .to_owned()
    };
    let (_world, inside) = played_by(&["http/1.1"], echo_after(wrong));
    let seen = inside.run(|client| async move {
        let mut stream = Door::Transparent.opened(&client, "http/1.1").await;
        stream.write_all(handshake().as_bytes()).await.unwrap();
        let head = head_of(&mut stream).await;
        let mut rest = Vec::new();
        drop(stream.read_to_end(&mut rest).await);
        head
    });
    assert_eq!(seen.value("x-box-egress"), Some("upstream_failed"));
    assert_eq!(seen.value("connection"), Some("close"));
}

/// 101 as the answer to a request that asked for nothing of the kind.
#[test]
fn protocol_that_nobody_asked_for_is_refused() {
    let unasked = |_: &Head| {
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n".to_owned()
    };
    let (_world, inside) = played_by(&["http/1.1"], echo_after(unasked));
    let status = inside.run(|client| async move {
        let stream = Door::Transparent.opened(&client, "http/1.1").await;
        let get = request("GET", "cred.test", "/", &[]);
        send_http1(stream, get).await.unwrap().status
    });
    assert_eq!(status, 502);
}

#[test]
fn trailers_of_an_answer_pass_and_those_of_a_request_do_not() {
    let with_trailers = |head: &Head| {
        assert_eq!(head.value("te"), Some("trailers"));
        format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum, x-echo\r\n\r\n\
             2\r\nok\r\n0\r\nx-sum: 42\r\nx-echo: Bearer {SECRET}\r\ncontent-length: 9\r\n\r\n"
        )
    };
    let (_world, inside) = played_by(&["http/1.1"], echo_after(with_trailers));
    for door in DOORS {
        let seen = inside.run(move |client| async move {
            let stream = door.opened(&client, "h2").await;
            let headers = [("authorization", BEARER), ("te", "trailers")];
            streams::trailers_of(stream, &headers).await
        });
        assert_eq!(seen["x-sum"], "42");
        assert_eq!(seen["x-echo"], BEARER, "scrubbed like a header");
        assert!(!seen.contains_key("content-length"));
    }
}

#[test]
fn trailers_of_a_request_stay_behind() {
    let (_world, inside) = played_by(&["http/1.1"], origin::says_what_it_reads());
    let read = inside.run(|client| async move {
        let mut stream = Door::Transparent.opened(&client, "http/1.1").await;
        let request = "POST / HTTP/1.1\r\nHost: cred.test\r\nTransfer-Encoding: chunked\r\n\
            Trailer: authorization\r\n\r\n1\r\nx\r\n0\r\nAuthorization: Bearer attacker\r\n\r\n";
        stream.write_all(request.as_bytes()).await.unwrap();
        let head = head_of(&mut stream).await;
        let length = head.value("content-length").unwrap().parse().unwrap();
        let mut read = vec![0; length];
        stream.read_exact(&mut read).await.unwrap();
        String::from_utf8(read).unwrap()
    });
    assert!(read.ends_with("1\r\nx\r\n0\r\n\r\n"), "{read}");
    assert!(!read.contains("attacker"), "{read}");
}

#[test]
fn body_of_a_get_is_delivered_whatever_its_framing() {
    let (_world, inside) = played_by(&["http/1.1"], origin::says_what_it_reads());
    for framed in [
        "Content-Length: 3\r\n\r\nabc",
        "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    ] {
        let read = inside.run(move |client| async move {
            let mut stream = Door::Transparent.opened(&client, "http/1.1").await;
            let request = format!("GET /x HTTP/1.1\r\nHost: cred.test\r\n{framed}");
            stream.write_all(request.as_bytes()).await.unwrap();
            let head = head_of(&mut stream).await;
            let length = head.value("content-length").unwrap().parse().unwrap();
            let mut read = vec![0; length];
            stream.read_exact(&mut read).await.unwrap();
            String::from_utf8(read).unwrap()
        });
        assert!(read.contains("abc"), "{read}");
    }
}

#[test]
fn body_is_asked_for_before_it_is_sent() {
    let (_world, inside) = played_by(&["http/1.1"], origin::says_what_it_reads());
    for door in DOORS {
        let first = inside.run(move |client| async move {
            let mut stream = door.opened(&client, "http/1.1").await;
            let request = "POST / HTTP/1.1\r\nHost: cred.test\r\nExpect: 100-continue\r\n\
                Content-Length: 5\r\n\r\n";
            stream.write_all(request.as_bytes()).await.unwrap();
            let asked = head_of(&mut stream).await;
            stream.write_all(b"hello").await.unwrap();
            let answer = head_of(&mut stream).await;
            (asked.line, answer.line)
        });
        assert_eq!(first.0, "HTTP/1.1 100 Continue", "{door:?}");
        assert_eq!(first.1, "HTTP/1.1 200 OK", "{door:?}");
    }
}

#[test]
fn early_answers_of_a_host_do_not_end_a_request() {
    let hints = |_: &Head| {
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n\
         HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
            .to_owned()
    };
    let (_world, inside) = played_by(&["http/1.1"], echo_after(hints));
    let seen = inside.run(|client| async move {
        let stream = Door::Transparent.opened(&client, "h2").await;
        let mut get = request("GET", "cred.test", "https://cred.test/", &[]);
        get.headers_mut().remove("host");
        send_http2(stream, get).await.unwrap()
    });
    assert_eq!((seen.status, seen.body.as_str()), (200, "ok"));
}

/// IPv6 is tried first; when it does not answer, IPv4 is not waited for long.
#[test]
fn host_with_both_kinds_of_addresses_is_reached_by_the_one_that_answers() {
    let mut world = World::start();
    let (six, four) = ("2606:4700::1:1", "45.33.32.71");
    let both = [six.parse().unwrap(), four.parse().unwrap()];
    world
        .rig
        .zone("both.test", box_fakes::rig::Answer::addresses(both));
    let alone = [six.parse().unwrap()];
    world
        .rig
        .zone("six.test", box_fakes::rig::Answer::addresses(alone));
    let inside = world.new_box(allow(&["both.test", "six.test"]), Vec::new());
    let get = |host: &'static str| {
        inside.run(move |client| async move { client.get(host, "/", &[]).await.status })
    };
    let count = |address: &str| {
        world
            .rig
            .accepts(SocketAddr::new(address.parse().unwrap(), 443))
    };
    assert_eq!(get("six.test"), 200);
    assert_eq!(get("both.test"), 200);
    assert_eq!((count(six), count(four)), (2, 0));
    // Nobody has this address on the wire: what is sent there is lost. A connection that is just
    // ending may have made the kernel look for it already.
    for arguments in [
        ["-6", "route", "replace", six, "dev", "host0"].as_slice(),
        &[
            "-6",
            "neigh",
            "replace",
            six,
            "lladdr",
            "02:00:00:00:00:99",
            "dev",
            "host0",
            "nud",
            "permanent",
        ],
    ] {
        assert!(
            Command::new("ip")
                .args(arguments)
                .status()
                .unwrap()
                .success()
        );
    }
    assert_eq!(get("both.test"), 200);
    assert_eq!((count(six), count(four)), (2, 1));
}

#[test]
fn connections_to_a_host_are_used_again_by_one_box_alone() {
    let (mut world, a) = played_by(&["h2", "http/1.1"], origin::says_which_connection());
    let b = world.new_box(allow(&["cred.test"]), bound(crate::world::PLACEHOLDER_B));
    let twice = |inside: &Inside, alpn: &'static str| {
        inside.run(move |client| async move {
            let stream = Door::Transparent.opened(&client, alpn).await;
            streams::two_requests(stream, alpn).await
        })
    };
    let mut seen = Vec::new();
    for alpn in ["http/1.1", "h2"] {
        for inside in [&a, &b, &a] {
            let (first, second) = twice(inside, alpn);
            assert_eq!(first, second, "one connection serves both requests");
            seen.push(first);
        }
    }
    let mut distinct = seen.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), seen.len(), "{seen:?}");
}

#[test]
fn node_speaks_http2_and_websockets_over_it() {
    let (world, inside) = played_by(&["h2", "http/1.1"], echo_after(agrees));
    let bundle = world.folder.path().join("bundle.pem");
    std::fs::write(&bundle, &world.authority.cert_pem).unwrap();
    let output = inside.run(move |client| async move {
        let address = client.address_of("cred.test").await;
        let mut node = Command::new("node");
        node.args(["-e", include_str!("protocols/websocket.js")]);
        node.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
        node.env("NODE_EXTRA_CA_CERTS", bundle);
        node.env("ADDRESS", address.to_string())
            .env("BEARER", BEARER);
        let output = node.output().unwrap();
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    });
    assert_eq!(output, "200 chat ping\n");
}
