//! One way of carrying a row out, and what came back.

use super::{Ends, Sends};
use crate::client::{Client, REFUSAL, RESOLVER};
use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

const PROXY: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 3128);
/// Longer than anything a proxy on the same machine takes, shorter than a program in a box may.
const ANSWER_WAIT: Duration = Duration::from_secs(25);
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A way in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    /// To the name's fake address.
    Transparent,
    /// Through a `CONNECT` tunnel.
    Tunnel,
}

/// What one attempt sends.
#[derive(Clone)]
pub(crate) enum Trial {
    Proxy(Vec<u8>),
    /// On port 80 of the refusal address.
    Refusal(Vec<u8>),
    /// On a port of a host.
    Bare(Door, &'static str, u16, Vec<u8>),
    /// Inside the TLS of `cred.test`, with this protocol agreed.
    Inside(Door, &'static str, Vec<u8>),
    Request(
        Door,
        &'static str,
        &'static str,
        &'static [(&'static str, &'static str)],
    ),
    Udp(Vec<u8>),
    Tcp(Vec<u8>),
    /// To the proxy port, for a name that is looked up.
    Named(Vec<u8>),
}

impl std::fmt::Debug for Trial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let show = |bytes: &[u8]| bytes[..bytes.len().min(300)].escape_ascii().to_string();
        match self {
            Self::Proxy(bytes) => write!(f, "to the proxy: {}", show(bytes)),
            Self::Named(bytes) => write!(f, "to the proxy by name: {}", show(bytes)),
            Self::Refusal(bytes) => write!(f, "to the refusal address: {}", show(bytes)),
            Self::Bare(door, host, port, bytes) => {
                write!(f, "{door:?} {host}:{port}: {}", show(bytes))
            }
            Self::Inside(door, alpn, bytes) => write!(f, "{door:?} in {alpn}: {}", show(bytes)),
            Self::Request(door, alpn, path, headers) => {
                write!(f, "{door:?} {alpn} {path} {headers:?}")
            }
            Self::Udp(bytes) => write!(f, "by UDP: {}", show(bytes)),
            Self::Tcp(bytes) => write!(f, "by TCP: {}", show(bytes)),
        }
    }
}

/// What came back.
pub(crate) struct Got {
    /// 0 where there is none.
    status: u16,
    reason: String,
    /// The code and the number of answers of a DNS message.
    dns: Option<(u8, u16)>,
    pub(crate) bytes: Vec<u8>,
}

impl std::fmt::Debug for Got {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = &self.bytes[..self.bytes.len().min(300)];
        let (status, reason, dns) = (self.status, &self.reason, self.dns);
        write!(f, "{status} {reason:?} {dns:?} {}", shown.escape_ascii())
    }
}

/// Every way of sending this.
pub(crate) fn all(sends: Sends) -> Vec<Trial> {
    let both = |make: &dyn Fn(Door) -> Trial| vec![make(Door::Transparent), make(Door::Tunnel)];
    match sends {
        Sends::Host(host) => vec![
            Trial::Proxy(connect(&format!("{host}:443"))),
            Trial::Proxy(absolute(host)),
            Trial::Refusal(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes()),
        ],
        Sends::Connect(authority) => vec![Trial::Proxy(connect(authority))],
        Sends::Proxy(bytes) => vec![Trial::Proxy(bytes.to_vec())],
        Sends::ProxyMade(make) => vec![Trial::Proxy(make())],
        Sends::LeadsTo(_) => Vec::new(),
        Sends::Http(bytes) => both(&|door| Trial::Bare(door, "ok.test", 80, bytes.to_vec())),
        Sends::HttpMade(make) => both(&|door| Trial::Bare(door, "ok.test", 80, make())),
        Sends::Tls(make) => both(&|door| Trial::Bare(door, "ok.test", 443, make())),
        Sends::Opened(bytes) => both(&|door| Trial::Inside(door, "http/1.1", bytes.to_vec())),
        Sends::OpenedMade(make) => both(&|door| Trial::Inside(door, "http/1.1", make())),
        Sends::Frames(make) => both(&|door| {
            Trial::Inside(
                door,
                "h2",
                [PREFACE, &super::http2::SETTINGS, &make()].concat(),
            )
        }),
        Sends::Credential(path, headers) => ["http/1.1", "h2"]
            .into_iter()
            .flat_map(|alpn| both(&move |door| Trial::Request(door, alpn, path, headers)))
            .collect(),
        Sends::Packet(make) => vec![Trial::Udp(make()), Trial::Tcp(make())],
    }
}

/// A name whose addresses count.
pub(crate) fn to_name(name: &str) -> Vec<Trial> {
    vec![
        Trial::Named(connect(&format!("{name}:443"))),
        Trial::Named(absolute(name)),
    ]
}

fn connect(authority: &str) -> Vec<u8> {
    format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n").into_bytes()
}

fn absolute(host: &str) -> Vec<u8> {
    format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes()
}

impl Trial {
    /// Whether a host is connected to before what is refused was sent: `CONNECT` is answered
    /// once its host is there.
    pub(crate) fn dials_first(&self) -> bool {
        matches!(
            self,
            Self::Bare(Door::Tunnel, ..)
                | Self::Inside(Door::Tunnel, ..)
                | Self::Request(Door::Tunnel, ..)
        )
    }

    /// Whether names are asked for before it can be refused.
    pub(crate) fn looks_up(&self) -> bool {
        self.dials_first() || matches!(self, Self::Named(_))
    }

    /// The end of a row, as this way in tells it: in place of a host a policy answers 451.
    pub(crate) fn expects(&self, ends: Ends) -> Ends {
        match (self, ends) {
            (Self::Refusal(_), Ends::Refused(403, reason)) => Ends::Refused(451, reason),
            _ => ends,
        }
    }

    pub(crate) async fn run(self, client: &Client) -> Got {
        let found = timeout(ANSWER_WAIT, self.clone().carry_out(client)).await;
        found.unwrap_or_else(|_| panic!("no end to {self:?}"))
    }

    async fn carry_out(self, client: &Client) -> Got {
        match self {
            Self::Proxy(bytes) | Self::Named(bytes) => {
                let stream = TcpStream::connect(PROXY).await.unwrap();
                http(stream, &bytes).await
            }
            Self::Refusal(bytes) => {
                let stream = TcpStream::connect((REFUSAL, 80)).await.unwrap();
                http(stream, &bytes).await
            }
            Self::Bare(door, host, port, bytes) => {
                http(open(client, door, host, port).await, &bytes).await
            }
            Self::Inside(door, alpn, bytes) => {
                let stream = open(client, door, "cred.test", 443).await;
                let stream = client.tls(stream, "cred.test", &[alpn]).await.unwrap();
                if alpn == "h2" {
                    frames(stream, &bytes).await
                } else {
                    http(stream, &bytes).await
                }
            }
            Self::Request(door, alpn, path, headers) => {
                request(client, door, alpn, (path, headers)).await
            }
            Self::Udp(packet) => by_udp(&packet).await,
            Self::Tcp(packet) => by_tcp(&packet).await,
        }
    }
}

async fn open(client: &Client, door: Door, host: &str, port: u16) -> TcpStream {
    match door {
        Door::Transparent => client.connect(host, port).await,
        Door::Tunnel => client.tunnel(&format!("{host}:{port}")).await.unwrap(),
    }
}

async fn request(
    client: &Client,
    door: Door,
    alpn: &str,
    (path, headers): (&str, &[(&str, &str)]),
) -> Got {
    let stream = open(client, door, "cred.test", 443).await;
    let stream = client.tls(stream, "cred.test", &[alpn]).await.unwrap();
    let url = format!("https://cred.test{path}");
    let seen = if alpn == "h2" {
        let mut request = crate::client::request("GET", "cred.test", &url, headers);
        request.headers_mut().remove("host");
        crate::client::send_http2(stream, request).await
    } else {
        let request = crate::client::request("GET", "cred.test", path, headers);
        crate::client::send_http1(stream, request).await
    };
    let seen = seen.unwrap();
    let told = format!("{:?}{}", seen.headers, seen.body);
    Got {
        status: seen.status,
        reason: seen.reason().to_owned(),
        dns: None,
        bytes: told.into_bytes(),
    }
}

/// Sends, and reads until there is an answer or an end.
async fn http(mut stream: impl AsyncRead + AsyncWrite + Unpin, bytes: &[u8]) -> Got {
    // A connection that is closed before everything was written has been refused.
    drop(stream.write_all(bytes).await);
    let mut answer = Vec::new();
    let least = usize::from(!bytes.ends_with(b"\r\n\r\n"));
    while !is_whole(&answer, least) {
        match stream.read_buf(&mut answer).await {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
    }
    let text = String::from_utf8_lossy(&answer).into_owned();
    let head = text.split("\r\n\r\n").next().unwrap_or_default();
    let status = head
        .strip_prefix("HTTP/1.1 ")
        .and_then(|rest| rest.get(..3));
    let reason = head.split("x-box-egress: ").nth(1).unwrap_or_default();
    Got {
        status: status.and_then(|status| status.parse().ok()).unwrap_or(0),
        reason: reason.lines().next().unwrap_or_default().to_owned(),
        dns: None,
        bytes: answer,
    }
}

/// Whether an answer of HTTP/1.1 is there as a whole, or the beginning of one in TLS. After a tunnel
/// was granted so many bytes come at least.
fn is_whole(answer: &[u8], after_grant_bytes_min: usize) -> bool {
    if answer.first() == Some(&22) {
        return true;
    }
    let text = String::from_utf8_lossy(answer);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let head = head.to_ascii_lowercase();
    let length = head.split("content-length: ").nth(1);
    match length.and_then(|rest| rest.lines().next()?.parse::<usize>().ok()) {
        Some(length) => body.len() >= length,
        None if head.contains("transfer-encoding") => body.ends_with("0\r\n\r\n"),
        None if after_grant_bytes_min > 0 => body.len() >= after_grant_bytes_min,
        None => head.starts_with("http/1.1 200 connection established"),
    }
}

/// Sends frames, and reads until the first stream is answered or broken off. The status is that
/// of an answer whose `:status` stands in HPACK's static table or as three digits.
async fn frames(mut stream: impl AsyncRead + AsyncWrite + Unpin, bytes: &[u8]) -> Got {
    drop(stream.write_all(bytes).await);
    let mut answer = Vec::new();
    let outcome = read_frames(&mut stream, &mut answer).await;
    Got {
        status: outcome.unwrap_or(0),
        reason: String::new(),
        dns: None,
        bytes: answer,
    }
}

async fn read_frames(
    stream: &mut (impl AsyncRead + Unpin),
    answer: &mut Vec<u8>,
) -> io::Result<u16> {
    const HEADERS: u8 = 1;
    const RESET: u8 = 3;
    const GOAWAY: u8 = 7;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        stream.read_exact(&mut payload).await?;
        answer.extend_from_slice(&payload);
        let is_ours = head[8] == 1;
        match head[3] {
            HEADERS if is_ours => return Ok(1),
            RESET if is_ours => return Ok(0),
            GOAWAY => return Ok(0),
            _ => {}
        }
    }
}

async fn by_udp(packet: &[u8]) -> Got {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await.unwrap();
    socket.send_to(packet, RESOLVER).await.unwrap();
    // What is not answered is overtaken by a query that is.
    let probe = super::dns::probe();
    socket.send_to(&probe, RESOLVER).await.unwrap();
    let mut first = vec![0; 65_535];
    let (bytes, _) = socket.recv_from(&mut first).await.unwrap();
    first.truncate(bytes);
    if first[..2] == probe[..2] {
        first.clear();
    }
    message(first)
}

async fn by_tcp(packet: &[u8]) -> Got {
    let mut stream = TcpStream::connect(RESOLVER).await.unwrap();
    let length = u16::try_from(packet.len()).unwrap().to_be_bytes();
    stream.write_all(&[&length, packet].concat()).await.unwrap();
    let mut answer = Vec::new();
    if let Ok(bytes) = stream.read_u16().await {
        answer.resize(usize::from(bytes), 0);
        stream.read_exact(&mut answer).await.unwrap();
    }
    message(answer)
}

fn message(bytes: Vec<u8>) -> Got {
    let dns = bytes.get(..8).map(|head| {
        let answers = u16::from_be_bytes([head[6], head[7]]);
        (head[3] & 0x0f, answers)
    });
    Got {
        status: 0,
        reason: String::new(),
        dns,
        bytes,
    }
}

impl Got {
    /// Whether it is what a row wants.
    pub(crate) fn is(&self, ends: Ends) -> bool {
        let is_alert = self.bytes.first() == Some(&21);
        match ends {
            // HTTP/2 says only that there is an answer; the reason is told to the host.
            Ends::Refused(_, _) if self.status == 1 => true,
            Ends::Refused(status, reason) => self.status == status && self.reason == reason.slug(),
            Ends::Closed(_) => self.status == 0 && (self.bytes.is_empty() || is_alert),
            Ends::Broken => self.reason.is_empty() && [0, 400, 431].contains(&self.status),
            Ends::Says(code, answers) | Ends::SaysAndTells(code, answers, _) => {
                self.dns == Some((code, answers))
            }
            Ends::Silence => self.bytes.is_empty(),
            Ends::Passes if self.bytes.first() == Some(&22) => true,
            Ends::Passes => (1..400).contains(&self.status) && self.reason.is_empty(),
        }
    }
}
