//! What a company puts between its machines and the internet: a proxy that lets nobody through
//! without a login, and name servers that are asked over TLS.

use super::dns::{self, Wire};
use super::internet::{Internet, accept, everywhere};
use super::web::ThisThread;
use super::{Answer, LeafKind};
use anyhow::{Context as _, Result};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Collected, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

const HEAD_BYTES_MAX: usize = 16 << 10;

/// A proxy that speaks `CONNECT` and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrictProxy {
    pub port: u16,
    /// What `Proxy-Authorization` must be; empty: nothing.
    pub authorization: String,
    /// Targets it does not connect to, as they are asked for.
    pub refused: Vec<String>,
}

pub(crate) fn proxy(internet: &Rc<Internet>, proxy: StrictProxy) -> Result<()> {
    let listener = everywhere(proxy.port)?;
    let (internet, proxy) = (Rc::clone(internet), Rc::new(proxy));
    tokio::task::spawn_local(async move {
        while let Some((stream, _)) = accept(&internet, &listener).await {
            tokio::task::spawn_local(relay(Rc::clone(&internet), stream, Rc::clone(&proxy)));
        }
    });
    Ok(())
}

async fn relay(
    internet: Rc<Internet>,
    mut stream: TcpStream,
    proxy: Rc<StrictProxy>,
) -> Option<()> {
    let head = read_head(&mut stream).await?;
    let (target, status) = judge(&head, &proxy);
    internet.with(|world| {
        world.tunnels.push(target.clone());
        world.note(format!("proxy: CONNECT {target}: {status}"));
    });
    if status != 200 {
        let answer = format!("HTTP/1.1 {status} No\r\ncontent-length: 0\r\n\r\n");
        stream.write_all(answer.as_bytes()).await.ok()?;
        return stream.shutdown().await.ok();
    }
    let mut upstream = reach(address_of(&internet, &target)?).await.ok()?;
    // One write with the first bytes of a host that speaks first: nobody may read past the head.
    stream
        .write_all(b"HTTP/1.1 200 Connected\r\nvia: rig\r\n\r\n")
        .await
        .ok()?;
    let _ended = tokio::io::copy_bidirectional(&mut stream, &mut upstream).await;
    Some(())
}

async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < HEAD_BYTES_MAX {
        head.push(stream.read_u8().await.ok()?);
    }
    String::from_utf8(head).ok()
}

/// What was asked for, and the status of the answer.
fn judge(head: &str, proxy: &StrictProxy) -> (String, u16) {
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let is_connect = words.next() == Some("CONNECT");
    let target = words.next().unwrap_or_default().to_owned();
    let sound = is_connect && words.next() == Some("HTTP/1.1") && words.next().is_none();
    let headers: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(": ")).collect();
    let value = |name: &str| {
        let mut values = headers
            .iter()
            .filter(|(own, _)| own.eq_ignore_ascii_case(name));
        (values.next().map(|(_, value)| *value), values.next())
    };
    let status = if !sound || value("host") != (Some(target.as_str()), None) {
        400
    } else if !proxy.authorization.is_empty()
        && value("proxy-authorization") != (Some(proxy.authorization.as_str()), None)
    {
        407
    } else if proxy.refused.contains(&target) {
        403
    } else {
        200
    };
    (target, status)
}

/// The address, or what the name server of the internet has for the name.
fn address_of(internet: &Internet, target: &str) -> Option<SocketAddr> {
    if let Ok(address) = target.parse() {
        return Some(address);
    }
    let (name, port) = target.rsplit_once(':')?;
    let port = port.parse().ok()?;
    match internet.with(|world| world.answer(name, "A")) {
        Answer::Addresses { addresses, .. } => {
            let v4 = addresses.into_iter().find(IpAddr::is_ipv4)?;
            Some(SocketAddr::new(v4, port))
        }
        Answer::Cname(_)
        | Answer::NxDomain
        | Answer::ServFail
        | Answer::Refused
        | Answer::Silence => None,
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "every address of the internet is this side"
)]
async fn reach(address: SocketAddr) -> std::io::Result<TcpStream> {
    TcpStream::connect(address).await
}

/// Name servers at every address, as `name`: DNS over TLS at one port, over HTTPS at the other.
pub(crate) fn secure_dns(internet: &Rc<Internet>, name: &str, ports: (u16, u16)) -> Result<()> {
    let tls = |protocol: &[u8]| -> Result<TlsAcceptor> {
        let config = internet.authority.server(name, LeafKind::Good)?;
        let mut config = ServerConfig::clone(&config);
        config.alpn_protocols = vec![protocol.to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    };
    let (over_tls, over_https) = (tls(b"dot")?, tls(b"h2")?);
    let dot = everywhere(ports.0).context("no DNS over TLS")?;
    let doh = everywhere(ports.1).context("no DNS over HTTPS")?;
    let own = Rc::clone(internet);
    tokio::task::spawn_local(async move {
        while let Some((stream, _)) = accept(&own, &dot).await {
            let (own, tls) = (Rc::clone(&own), over_tls.clone());
            tokio::task::spawn_local(async move {
                let stream = tls.accept(stream).await.ok()?;
                dns::converse(own, stream, Wire::Tls).await
            });
        }
    });
    let own = Rc::clone(internet);
    tokio::task::spawn_local(async move {
        while let Some((stream, _)) = accept(&own, &doh).await {
            let (own, tls) = (Rc::clone(&own), over_https.clone());
            tokio::task::spawn_local(async move {
                let stream = tls.accept(stream).await.ok()?;
                let service = service_fn(move |request| answer(Rc::clone(&own), request));
                let _ended = http2::Builder::new(ThisThread)
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
                Some(())
            });
        }
    });
    Ok(())
}

/// RFC 8484 §4.1, by POST.
async fn answer(
    internet: Rc<Internet>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let kind = "application/dns-message";
    let is_query = request.method() == "POST"
        && request.uri().path() == "/dns-query"
        && request
            .headers()
            .get("content-type")
            .is_some_and(|own| own == kind);
    let body = request.into_body().collect().await;
    let query = body.map(Collected::to_bytes).unwrap_or_default();
    let answer = dns::answer(&internet, &query, Wire::Tls).filter(|_| is_query);
    let mut response = Response::new(Full::from(answer.clone().unwrap_or_default()));
    match answer {
        Some(_) => {
            let value = http::HeaderValue::from_static("application/dns-message");
            response.headers_mut().insert("content-type", value);
        }
        None => *response.status_mut() = StatusCode::BAD_REQUEST,
    }
    Ok(response)
}
