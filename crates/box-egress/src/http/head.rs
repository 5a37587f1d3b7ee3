//! Reads the head of a request, strictly. HTTP libraries accept more than a policy can judge
//! (bare line feeds, two lengths, two hosts), so this stands before them (catalogue §2.1, §2.5).

use crate::limits::HEAD_WAIT;
use box_api::egress::HostName;
use box_api::egress::name::parse_port;
use bytes::{Bytes, BytesMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::timeout;

/// Longest head.
pub(crate) const HEAD_BYTES_MAX: usize = 16 << 10;
/// Most headers of a head.
pub(crate) const HEADERS_MAX: usize = 100;
const HEAD_END: &[u8] = b"\r\n\r\n";

/// Why there is no head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadError {
    /// The client went away, or broke off in the middle.
    Closed,
    Malformed,
    TooLong,
    TooSlow,
}

/// How a request says where its body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyLength {
    Absent,
    Sized(u64),
    Chunked,
}

/// A request line and its headers.
pub(crate) struct Head {
    pub(crate) method: String,
    pub(crate) target: String,
    /// The second digit of the version, 0 or 1.
    minor_version: u8,
    /// Names in lower case.
    headers: Vec<(String, Bytes)>,
    /// Everything that was read: the head and what came with it.
    bytes: Bytes,
    ends_at: usize,
}

/// Reads up to the empty line. What comes behind it is kept.
pub(crate) async fn read_head(
    stream: &mut (impl AsyncRead + Unpin),
    early: Bytes,
) -> Result<Head, HeadError> {
    let whole = read_until_end(stream, BytesMut::from(early));
    let (bytes, head_bytes) = timeout(HEAD_WAIT, whole)
        .await
        .map_err(|_| HeadError::TooSlow)??;
    parse(&bytes.freeze(), head_bytes)
}

async fn read_until_end(
    stream: &mut (impl AsyncRead + Unpin),
    mut bytes: BytesMut,
) -> Result<(BytesMut, usize), HeadError> {
    let mut judged = 0;
    loop {
        if let Some(head_bytes) = end_of_head(&bytes, judged, HEAD_BYTES_MAX)? {
            return Ok((bytes, head_bytes));
        }
        judged = bytes.len();
        bytes.reserve(4096);
        match stream.read_buf(&mut bytes).await {
            Ok(0) | Err(_) => return Err(HeadError::Closed),
            Ok(_) => {}
        }
    }
}

/// How long the head at the beginning of `bytes` is, once all of it is there. The first `judged`
/// bytes were looked at before.
pub(crate) fn end_of_head(
    bytes: &[u8],
    judged: usize,
    bytes_max: usize,
) -> Result<Option<usize>, HeadError> {
    let from = judged.saturating_sub(HEAD_END.len());
    let end = bytes[from..]
        .windows(HEAD_END.len())
        .position(|window| window == HEAD_END);
    let head_bytes = end.map_or(bytes.len(), |at| from + at + HEAD_END.len());
    if head_bytes > bytes_max {
        return Err(HeadError::TooLong);
    }
    check_octets(&bytes[..head_bytes], judged)?;
    Ok(end.map(|_| head_bytes))
}

/// Every line ends in CR LF, and no other control character but TAB stands in it.
fn check_octets(head: &[u8], judged: usize) -> Result<(), HeadError> {
    for at in judged..head.len() {
        let fine = match head[at] {
            b'\n' => at > 0 && head[at - 1] == b'\r',
            b'\t' | b'\r' => true,
            octet => octet >= b' ' && octet != 0x7f,
        };
        let after_cr = at > 0 && head[at - 1] == b'\r' && head[at] != b'\n';
        if !fine || after_cr {
            return Err(HeadError::Malformed);
        }
    }
    Ok(())
}

pub(crate) fn parse(bytes: &Bytes, head_bytes: usize) -> Result<Head, HeadError> {
    if bytes.starts_with(b"\r") {
        return Err(HeadError::Malformed);
    }
    let mut slots = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut slots);
    let complete = request.parse(&bytes[..head_bytes]).map_err(|error| {
        let too_many = error == httparse::Error::TooManyHeaders;
        if too_many {
            HeadError::TooLong
        } else {
            HeadError::Malformed
        }
    })?;
    let method = request.method.unwrap_or_default();
    let is_method = |octet: u8| octet.is_ascii_uppercase() || octet == b'-';
    if complete.is_partial() || method.is_empty() || !method.bytes().all(is_method) {
        return Err(HeadError::Malformed);
    }
    let headers = request.headers.iter().map(|header| {
        (
            header.name.to_ascii_lowercase(),
            Bytes::copy_from_slice(header.value),
        )
    });
    let head = Head {
        method: method.to_owned(),
        target: request.path.unwrap_or_default().to_owned(),
        minor_version: request.version.unwrap_or_default(),
        headers: headers.collect(),
        ends_at: head_bytes,
        bytes: bytes.clone(),
    };
    head.check_framing()?;
    Ok(head)
}

impl Head {
    /// Everything that was read.
    pub(crate) fn bytes(&self) -> Bytes {
        self.bytes.clone()
    }

    /// What came behind the head.
    pub(crate) fn rest(&self) -> Bytes {
        self.bytes.slice(self.ends_at..)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.values(name).next().is_some()
    }

    /// The `Host` header; HTTP/1.1 wants exactly one, HTTP/1.0 at most one.
    ///
    /// # Errors
    /// [`HeadError::Malformed`] for two of them, or one that is no host.
    pub(crate) fn host(&self) -> Result<Option<Authority>, HeadError> {
        let mut values = self.values("host");
        let first = values.next();
        if values.next().is_some() {
            return Err(HeadError::Malformed);
        }
        let Some(value) = first else { return Ok(None) };
        let text = std::str::from_utf8(value).map_err(|_| HeadError::Malformed)?;
        Authority::parse(text).map(Some).ok_or(HeadError::Malformed)
    }

    fn values(&self, name: &str) -> impl Iterator<Item = &Bytes> {
        self.headers
            .iter()
            .filter(move |(own, _)| own == name)
            .map(|(_, value)| value)
    }

    /// How long the body is.
    pub(crate) fn body_length(&self) -> BodyLength {
        if self.has("transfer-encoding") {
            return BodyLength::Chunked;
        }
        // Eighteen digits at most, see `check_framing`.
        let length = self.values("content-length").next();
        let length = length.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
        length.map_or(BodyLength::Absent, BodyLength::Sized)
    }

    fn check_framing(&self) -> Result<(), HeadError> {
        let lengths: Vec<&Bytes> = self.values("content-length").collect();
        let codings: Vec<&Bytes> = self.values("transfer-encoding").collect();
        let is_length =
            |value: &Bytes| (1..=18).contains(&value.len()) && value.iter().all(u8::is_ascii_digit);
        let sound = match (lengths.as_slice(), codings.as_slice()) {
            ([], []) => true,
            ([length], []) => is_length(length),
            ([], [coding]) => self.minor_version == 1 && coding.eq_ignore_ascii_case(b"chunked"),
            _ => false,
        };
        if sound {
            Ok(())
        } else {
            Err(HeadError::Malformed)
        }
    }
}

/// A host as a request names it, before anything is known about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Host {
    Name(HostName),
    Literal(IpAddr),
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Literal(addr) => addr.fmt(f),
        }
    }
}

/// `host` or `host:port`. No user, no percent signs, no zone, no other spelling of an address
/// than the canonical ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Authority {
    pub(crate) host: Host,
    pub(crate) port: Option<u16>,
}

impl Authority {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            let (addr, port) = rest.split_once(']')?;
            (
                Host::Literal(IpAddr::V6(addr.parse::<Ipv6Addr>().ok()?)),
                port,
            )
        } else {
            let at = text.find(':').unwrap_or(text.len());
            let (host, port) = text.split_at(at);
            let host = match host.parse::<Ipv4Addr>() {
                Ok(addr) => Host::Literal(IpAddr::V4(addr)),
                Err(_) => Host::Name(HostName::parse(host).ok()?),
            };
            (host, port)
        };
        let port = match port.strip_prefix(':') {
            Some(port) => Some(parse_port(port)?),
            None if port.is_empty() => None,
            None => return None,
        };
        Some(Self { host, port })
    }

    /// Whether it names this host, at this port where it names one.
    pub(crate) fn is(&self, host: &HostName, port: u16) -> bool {
        let same_host = matches!(&self.host, Host::Name(name) if name == host);
        same_host && self.port.is_none_or(|own| own == port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt as _;

    async fn read(bytes: &[u8]) -> Result<Head, HeadError> {
        let mut stream = bytes;
        read_head(&mut stream, Bytes::new()).await
    }

    #[tokio::test]
    async fn head_is_read_and_the_rest_is_kept() {
        let head = read(b"CONNECT ok.test:443 HTTP/1.1\r\nHost: ok.test:443\r\n\r\n\x16\x03").await;
        let head = head.unwrap_or_else(|error| panic!("{error:?}"));
        assert_eq!(
            (head.method.as_str(), head.target.as_str()),
            ("CONNECT", "ok.test:443")
        );
        assert_eq!(head.rest(), b"\x16\x03".as_slice());
        assert_eq!(head.host().unwrap().unwrap().port, Some(443));
    }

    #[tokio::test]
    async fn head_that_comes_byte_by_byte_is_the_same() {
        let (mut near, mut far) = tokio::io::duplex(1);
        let request = b"GET http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\nrest";
        let write = tokio::spawn(async move { far.write_all(request).await });
        let head = read_head(&mut near, Bytes::new())
            .await
            .unwrap_or_else(|e| panic!("{e:?}"));
        assert_eq!(head.target, "http://ok.test/");
        // Behind the head nobody read on.
        drop(near);
        assert!(write.await.unwrap().is_err());
    }

    #[tokio::test]
    async fn ambiguous_or_broken_heads_are_malformed() {
        for request in [
            // E1–E5, E7
            "POST / HTTP/1.1\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: +5\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 5, 5\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 0x5\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length:\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 18446744073709551616\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked, identity\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: identity, chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunkedx\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding : chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: \x0bchunked\r\n\r\n",
            // E11, E12
            "GET / HTTP/1.1\nHost: ok.test\n\n",
            "GET / HTTP/1.1\r\nHost: ok.test\n\r\n",
            "GET / HTTP/1.1\r\nX: a\rb\r\n\r\n",
            "GET / HTTP/1.1\r\nX: a\0b\r\n\r\n",
            "GET / HTTP/1.1\r\nno colon\r\n\r\n",
            "GET / HTTP/1.1\r\nAuthorization: Bearer\r\n PH-A\r\n\r\n",
            // E18, E19, D5
            "GET / HTTP/1.2\r\n\r\n",
            "GET / JUNK/9.9\r\n\r\n",
            "GET /\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            "connect ok.test:443 HTTP/1.1\r\n\r\n",
            "\r\nGET / HTTP/1.1\r\n\r\n",
            "GET  / HTTP/1.1\r\n\r\n",
        ] {
            let outcome = read(request.as_bytes()).await.map(|_| ());
            assert_eq!(outcome, Err(HeadError::Malformed), "{request:?}");
        }
    }

    #[tokio::test]
    async fn sound_framing_passes() {
        for request in [
            "GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n",
            "GET / HTTP/1.0\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length:  5 \r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n",
            "VERSION-CONTROL / HTTP/1.1\r\n\r\n",
        ] {
            assert!(read(request.as_bytes()).await.is_ok(), "{request:?}");
        }
    }

    #[tokio::test]
    async fn head_has_a_size_and_a_number_of_headers() {
        let long = format!(
            "GET / HTTP/1.1\r\nX: {}\r\n\r\n",
            "a".repeat(HEAD_BYTES_MAX)
        );
        assert_eq!(
            read(long.as_bytes()).await.map(|_| ()),
            Err(HeadError::TooLong)
        );
        let endless = "a".repeat(HEAD_BYTES_MAX + 1);
        assert_eq!(
            read(endless.as_bytes()).await.map(|_| ()),
            Err(HeadError::TooLong)
        );
        let headers = |count| format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(count));
        assert!(read(headers(HEADERS_MAX).as_bytes()).await.is_ok());
        let too_many = read(headers(HEADERS_MAX + 1).as_bytes()).await;
        assert_eq!(too_many.map(|_| ()), Err(HeadError::TooLong));
    }

    #[tokio::test]
    async fn host_header_is_one_host() {
        for (value, fine) in [
            ("Host: ok.test\r\n", true),
            ("Host: OK.test.:443\r\n", true),
            ("Host: ok.test\r\nHost: ok.test\r\n", false),
            ("Host: ok.test@evil.test\r\n", false),
            ("Host: ok.test:443, evil.test\r\n", false),
            ("Host:\r\n", false),
        ] {
            let head = read(format!("GET / HTTP/1.1\r\n{value}\r\n").as_bytes()).await;
            let head = head.unwrap_or_else(|error| panic!("{error:?}"));
            assert_eq!(head.host().is_ok(), fine, "{value:?}");
        }
    }

    #[test]
    fn authority_has_one_spelling() {
        for text in [
            "ok.test:443",
            "OK.TEST:443",
            "ok.test.:443",
            "a_b.wild.test:80",
            "127.0.0.1:443",
            "[::1]:443",
            "[::ffff:127.0.0.1]:443",
        ] {
            assert!(Authority::parse(text).is_some(), "{text}");
        }
        for text in [
            // D2
            "ok.test:0",
            "ok.test:-1",
            "ok.test:+443",
            "ok.test:0443",
            "ok.test:443:80",
            "ok.test: 443",
            "ok.test:https",
            "ok.test:65979",
            "ok.test:",
            // A7, A9–A12, A17
            ".wild.test:443",
            "a..wild.test:443",
            "evil.test%00.wild.test:443",
            "evil.test%2ewild.test:443",
            "ok.test@evil.test:443",
            "ok.test\\:443",
            "-a.wild.test:443",
            // B2, B10
            "2130706433:443",
            "017700000001:443",
            "0x7f000001:443",
            "0177.0.0.1:443",
            "0x7f.1:443",
            "127.1:443",
            "0:443",
            "[fe80::1%25eth0]:443",
            "[::ffff:1.2.3.4%25x.wild.test]:443",
            "[ok.test]:443",
            "[::1:443",
            "[::1]443",
            "::1",
            "",
        ] {
            assert!(Authority::parse(text).is_none(), "{text}");
        }
    }
}
