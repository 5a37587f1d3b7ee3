//! What programs in a box do: look names up, connect, speak TLS and HTTP.

use bytes::Bytes;
use hickory_proto::op::{Message, Query, ResponseCode};
use hickory_proto::rr::{Name, RData, RecordType};
use http::{HeaderMap, Request, StatusCode, Version};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub(crate) const RESOLVER: (Ipv4Addr, u16) = (Ipv4Addr::new(198, 18, 0, 1), 53);
pub(crate) const REFUSAL: Ipv4Addr = Ipv4Addr::new(198, 19, 255, 254);
const PROXY: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 3128);

#[derive(Clone)]
pub(crate) struct Client {
    roots: Arc<RootCertStore>,
}

/// An answer, whole.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Seen {
    /// What box-egress says about it, empty when it passed the answer of the host.
    pub(crate) fn reason(&self) -> &str {
        self.headers
            .get("x-box-egress")
            .map_or("", |value| value.to_str().unwrap())
    }
}

impl Client {
    pub(crate) fn new(bundle_pem: &str) -> Self {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(bundle_pem.as_bytes()) {
            roots.add(certificate.unwrap()).unwrap();
        }
        Self {
            roots: Arc::new(roots),
        }
    }

    /// Asks the box's resolver.
    pub(crate) async fn lookup(&self, name: &str, kind: RecordType) -> Message {
        let query = query(name, kind);
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await.unwrap();
        socket.send_to(&query, RESOLVER).await.unwrap();
        let mut answer = vec![0; 4096];
        let (bytes, _) = socket.recv_from(&mut answer).await.unwrap();
        Message::from_vec(&answer[..bytes]).unwrap()
    }

    pub(crate) async fn lookup_over_tcp(&self, name: &str, kind: RecordType) -> Message {
        let query = query(name, kind);
        let mut stream = TcpStream::connect(RESOLVER).await.unwrap();
        stream
            .write_u16(u16::try_from(query.len()).unwrap())
            .await
            .unwrap();
        stream.write_all(&query).await.unwrap();
        let mut answer = vec![0; usize::from(stream.read_u16().await.unwrap())];
        stream.read_exact(&mut answer).await.unwrap();
        Message::from_vec(&answer).unwrap()
    }

    pub(crate) async fn address_of(&self, name: &str) -> Ipv4Addr {
        let answer = self.lookup(name, RecordType::A).await;
        assert_eq!(
            answer.metadata.response_code,
            ResponseCode::NoError,
            "{name}"
        );
        match answer.answers.as_slice() {
            [record] => match record.data {
                RData::A(addr) => addr.0,
                ref other => panic!("{name}: {other:?}"),
            },
            other => panic!("{name}: {other:?}"),
        }
    }

    /// Looks the name up and connects, as any program does.
    pub(crate) async fn connect(&self, name: &str, port: u16) -> TcpStream {
        TcpStream::connect((self.address_of(name).await, port))
            .await
            .unwrap()
    }

    pub(crate) async fn tls(
        &self,
        stream: TcpStream,
        name: &str,
        alpn: &[&str],
    ) -> io::Result<TlsStream<TcpStream>> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(Arc::clone(&self.roots))
            .with_no_client_auth();
        config.alpn_protocols = alpn
            .iter()
            .map(|protocol| protocol.as_bytes().to_vec())
            .collect();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
    }

    /// `GET https://name/path` over HTTP/1.1, without a proxy.
    pub(crate) async fn get(&self, name: &str, path: &str, headers: &[(&str, &str)]) -> Seen {
        let stream = self.connect(name, 443).await;
        let stream = self.tls(stream, name, &["http/1.1"]).await.unwrap();
        send_http1(stream, request("GET", name, path, headers))
            .await
            .unwrap()
    }

    /// The same over HTTP/2.
    pub(crate) async fn get_http2(&self, name: &str, path: &str, headers: &[(&str, &str)]) -> Seen {
        let stream = self.connect(name, 443).await;
        let stream = self.tls(stream, name, &["h2"]).await.unwrap();
        let url = format!("https://{name}{path}");
        let mut request = request("GET", name, &url, headers);
        request.headers_mut().remove("host");
        send_http2(stream, request).await.unwrap()
    }

    /// Speaks to the proxy port; gives what it answered, or the tunnel.
    pub(crate) async fn tunnel(&self, authority: &str) -> Result<TcpStream, Seen> {
        let head = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
        let mut stream = TcpStream::connect(PROXY).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            answer.push(stream.read_u8().await.unwrap());
        }
        if answer.starts_with(b"HTTP/1.1 200 ") {
            return Ok(stream);
        }
        stream.read_to_end(&mut answer).await.unwrap();
        Err(parse(&answer))
    }

    /// Sends bytes to the proxy port and reads until it closes.
    pub(crate) async fn raw_proxy(&self, bytes: &[u8]) -> Seen {
        self.raw(TcpStream::connect(PROXY).await.unwrap(), bytes)
            .await
    }

    /// Sends bytes and reads until the other side closes.
    pub(crate) async fn raw(&self, mut stream: TcpStream, bytes: &[u8]) -> Seen {
        stream.write_all(bytes).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        parse(&answer)
    }
}

fn query(name: &str, kind: RecordType) -> Vec<u8> {
    let mut message = Message::query();
    message.add_query(Query::query(
        Name::from_ascii(format!("{name}.")).unwrap(),
        kind,
    ));
    message.to_vec().unwrap()
}

pub(crate) fn request(
    method: &str,
    host: &str,
    uri: &str,
    headers: &[(&str, &str)],
) -> Request<Full<Bytes>> {
    let mut builder = Request::builder()
        .method(method)
        .uri(uri)
        .header("host", host);
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    builder.body(Full::default()).unwrap()
}

pub(crate) async fn send_http1<S>(stream: S, request: Request<Full<Bytes>>) -> hyper::Result<Seen>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let driver = tokio::spawn(connection);
    let seen = read(sender.send_request(request).await?, Version::HTTP_11).await;
    driver.abort();
    seen
}

pub(crate) async fn send_http2<S>(stream: S, request: Request<Full<Bytes>>) -> hyper::Result<Seen>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    let driver = tokio::spawn(connection);
    let seen = read(sender.send_request(request).await?, Version::HTTP_2).await;
    driver.abort();
    seen
}

async fn read(response: http::Response<Incoming>, version: Version) -> hyper::Result<Seen> {
    assert_eq!(response.version(), version);
    let (parts, body) = response.into_parts();
    let body = body.collect().await?.to_bytes();
    Ok(Seen {
        status: parts.status.as_u16(),
        headers: parts.headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

/// An answer whose body ends with the connection.
fn parse(answer: &[u8]) -> Seen {
    let text = String::from_utf8_lossy(answer).into_owned();
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return Seen {
            status: 0,
            headers: HeaderMap::new(),
            body: text,
        };
    };
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap();
    let status: StatusCode = status.parse().unwrap();
    let mut headers = HeaderMap::new();
    for line in lines {
        let (name, value) = line.split_once(": ").unwrap();
        headers.append(
            http::HeaderName::from_bytes(name.as_bytes()).unwrap(),
            value.parse().unwrap(),
        );
    }
    Seen {
        status: status.as_u16(),
        headers,
        body: body.to_owned(),
    }
}
