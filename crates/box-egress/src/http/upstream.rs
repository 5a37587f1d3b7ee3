//! The connections to one host that one connection of a box uses: resolved, judged, dialled and
//! proven anew each time one is made.

mod extended;

use super::body::Flow;
use super::leash::LeashEnd;
use super::request::Site;
use crate::connect::connect;
use crate::context::{BoxContext, Configured, Room};
use crate::limits::{HANDSHAKE_WAIT, RESPONSE_WAIT};
use crate::policy::Allowed;
use crate::refuse::Refused;
use crate::tally::Tally;
use box_api::egress::Reason;
use http::uri::{PathAndQuery, Scheme};
use http::{HeaderValue, Request, Response, Uri, header};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use std::io;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Idle HTTP/1.1 connections kept for the next request.
const IDLE_MAX: usize = 16;
/// What is read ahead of a box that does not take it.
const HTTP1_BUFFER_BYTES_MAX: usize = 64 << 10;
const HTTP2_HEADER_BYTES_MAX: u32 = 64 << 10;
const HTTP2_STREAM_WINDOW_BYTES: u32 = 1 << 20;
const HTTP2_CONNECTION_WINDOW_BYTES: u32 = 4 << 20;

/// TLS towards hosts, once offering HTTP/2 and HTTP/1.1, once HTTP/1.1 alone.
pub(crate) struct UpstreamTls {
    pub(crate) any: Arc<ClientConfig>,
    pub(crate) http1: Arc<ClientConfig>,
}

/// Whether a host is spoken to over TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Security {
    Plain,
    Tls,
}

/// What the first connection found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaks {
    Unknown,
    Http1,
    Http2,
}

struct Pool {
    speaks: Speaks,
    idle: Vec<http1::SendRequest<Flow>>,
    http2: Option<http2::SendRequest<Flow>>,
}

pub(crate) struct Upstream {
    ctx: Arc<BoxContext>,
    configured: Arc<Configured>,
    allowed: Allowed,
    security: Security,
    leash: LeashEnd,
    /// A connection that was dialled before there was a request.
    seed: Mutex<Option<TcpStream>>,
    /// One connection to the host comes with the box's own; each further one needs room.
    first: Arc<Semaphore>,
    pool: Mutex<Pool>,
}

enum Sender {
    Http1(http1::SendRequest<Flow>),
    Http2(http2::SendRequest<Flow>),
}

/// What an [`Upstream`] is made of.
pub(crate) struct Way {
    pub(crate) ctx: Arc<BoxContext>,
    pub(crate) configured: Arc<Configured>,
    pub(crate) allowed: Allowed,
    pub(crate) security: Security,
    pub(crate) seed: Option<TcpStream>,
}

impl Upstream {
    pub(crate) fn new(way: Way, leash: LeashEnd) -> Self {
        let pool = Pool {
            speaks: Speaks::Unknown,
            idle: Vec::new(),
            http2: None,
        };
        Self {
            ctx: way.ctx,
            configured: way.configured,
            allowed: way.allowed,
            security: way.security,
            leash,
            seed: Mutex::new(way.seed),
            first: Arc::new(Semaphore::new(1)),
            pool: Mutex::new(pool),
        }
    }

    /// What the box's connection amounts to.
    pub(crate) fn tally(&self) -> &Tally {
        self.allowed.tally()
    }

    pub(crate) fn site(&self) -> Site {
        Site {
            host: self.allowed.host().clone(),
            port: self.allowed.port(),
        }
    }

    fn refuse(&self, reason: Reason) -> Refused {
        Refused::new(self.allowed.host().as_str(), self.allowed.port(), reason)
    }

    /// Sends a request whose URI holds no more than path and query. A connection that died while
    /// it was idle is replaced once, if nothing of the request was sent on it.
    pub(crate) async fn send(&self, request: Request<Flow>) -> Result<Response<Incoming>, Refused> {
        let first = self.lease().await?;
        match self.send_on(first, request).await? {
            Sent::Answered(response) => Ok(response),
            Sent::NotAtAll(request) => {
                let second = self.lease().await?;
                match self.send_on(second, request).await? {
                    Sent::Answered(response) => Ok(response),
                    Sent::NotAtAll(_) => Err(self.refuse(Reason::UpstreamFailed)),
                }
            }
        }
    }

    /// Sends a request that may change the protocol: on a connection of its own, HTTP/1.1, or
    /// HTTP/2 where a host speaks nothing else. The room is held while the other protocol is
    /// spoken.
    pub(crate) async fn send_alone(
        &self,
        request: Request<Flow>,
    ) -> Result<(Response<Incoming>, Arc<Room>), Refused> {
        let room = self.room()?;
        let stream = self.stream().await?;
        let sender = match self.security {
            Security::Plain => self.start_http1(stream, &room).await?,
            Security::Tls => {
                let config = Arc::clone(&self.configured.upstream_tls.http1);
                match self.shake_hands(stream, config).await? {
                    Ok(stream) => self.start_http1(stream, &room).await?,
                    Err(error) if extended::speaks_no_http1(&error) => {
                        return self.send_extended(request, room).await;
                    }
                    Err(_) => return Err(self.refuse(Reason::UpstreamTls)),
                }
            }
        };
        match self.send_on(Sender::Http1(sender), request).await? {
            Sent::Answered(response) => Ok((response, room)),
            Sent::NotAtAll(_) => Err(self.refuse(Reason::UpstreamFailed)),
        }
    }

    async fn send_on(&self, sender: Sender, mut request: Request<Flow>) -> Result<Sent, Refused> {
        let path = path_of(&request);
        let answer = match sender {
            Sender::Http1(mut sender) => {
                *request.uri_mut() = path.into();
                let host = HeaderValue::from_str(&self.authority());
                let host = host.map_err(|_| self.refuse(Reason::Malformed))?;
                request.headers_mut().insert(header::HOST, host);
                frame_for_http1(&mut request);
                let answer = timeout(RESPONSE_WAIT, sender.try_send_request(request)).await;
                self.keep(sender).await;
                answer
            }
            Sender::Http2(mut sender) => {
                *request.uri_mut() = self.absolute(path)?;
                request.headers_mut().remove(header::HOST);
                timeout(RESPONSE_WAIT, sender.try_send_request(request)).await
            }
        };
        match answer {
            Ok(Ok(response)) => Ok(Sent::Answered(response)),
            Ok(Err(mut error)) => match error.take_message() {
                Some(request) => Ok(Sent::NotAtAll(request)),
                None => Err(self.refuse(Reason::UpstreamFailed)),
            },
            Err(_) => Err(self.refuse(Reason::Timeout)),
        }
    }

    /// As `Host` and `:authority` want it: without the port that goes without saying.
    fn authority(&self) -> String {
        let (host, port) = (self.allowed.host(), self.allowed.port());
        let usual = match self.security {
            Security::Plain => 80,
            Security::Tls => 443,
        };
        if port == usual {
            host.to_string()
        } else {
            format!("{host}:{port}")
        }
    }

    fn absolute(&self, path: PathAndQuery) -> Result<Uri, Refused> {
        let scheme = match self.security {
            Security::Plain => Scheme::HTTP,
            Security::Tls => Scheme::HTTPS,
        };
        let builder = Uri::builder().scheme(scheme).authority(self.authority());
        builder
            .path_and_query(path)
            .build()
            .map_err(|_| self.refuse(Reason::Malformed))
    }

    /// A connection that is free, or a new one.
    async fn lease(&self) -> Result<Sender, Refused> {
        let mut pool = self.pool.lock().await;
        if let Some(sender) = pool.http2.as_ref().filter(|sender| !sender.is_closed()) {
            return Ok(Sender::Http2(sender.clone()));
        }
        pool.idle.retain(|sender| !sender.is_closed());
        if let Some(at) = pool.idle.iter().position(http1::SendRequest::is_ready) {
            return Ok(Sender::Http1(pool.idle.swap_remove(at)));
        }
        if pool.speaks == Speaks::Http1 {
            // Nobody can share it, so nobody need wait for it.
            drop(pool);
            return self.connect().await;
        }
        let sender = self.connect().await?;
        match &sender {
            Sender::Http1(_) => pool.speaks = Speaks::Http1,
            Sender::Http2(sender) => {
                pool.speaks = Speaks::Http2;
                pool.http2 = Some(sender.clone());
            }
        }
        Ok(sender)
    }

    async fn keep(&self, sender: http1::SendRequest<Flow>) {
        let mut pool = self.pool.lock().await;
        if !sender.is_closed() && pool.idle.len() < IDLE_MAX {
            pool.idle.push(sender);
        }
    }

    fn room(&self) -> Result<Arc<Room>, Refused> {
        let room = match Arc::clone(&self.first).try_acquire_owned() {
            Ok(first) => Some(vec![first]),
            Err(_) => self.ctx.further_room(),
        };
        room.map(Arc::new)
            .ok_or_else(|| self.refuse(Reason::TooManyConnections))
    }

    async fn connect(&self) -> Result<Sender, Refused> {
        let room = self.room()?;
        let stream = self.stream().await?;
        if self.security == Security::Plain {
            return self.start_http1(stream, &room).await.map(Sender::Http1);
        }
        let config = Arc::clone(&self.configured.upstream_tls.any);
        let stream = self.handshake(stream, config).await?;
        if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
            self.start_http2(stream, room).await.map(Sender::Http2)
        } else {
            self.start_http1(stream, &room).await.map(Sender::Http1)
        }
    }

    async fn stream(&self) -> Result<TcpStream, Refused> {
        if let Some(seed) = self.seed.lock().await.take() {
            return Ok(seed);
        }
        connect(&self.ctx, &self.configured, self.allowed.clone()).await
    }

    async fn handshake(
        &self,
        stream: TcpStream,
        config: Arc<ClientConfig>,
    ) -> Result<TlsStream<TcpStream>, Refused> {
        let shaken = self.shake_hands(stream, config).await?;
        shaken.map_err(|_| self.refuse(Reason::UpstreamTls))
    }

    /// The inner error is the host's, or about it.
    async fn shake_hands(
        &self,
        stream: TcpStream,
        config: Arc<ClientConfig>,
    ) -> Result<io::Result<TlsStream<TcpStream>>, Refused> {
        let name = ServerName::try_from(self.allowed.host().to_string());
        let name = name.map_err(|_| self.refuse(Reason::UpstreamTls))?;
        let handshake = TlsConnector::from(config).connect(name, stream);
        let shaken = timeout(HANDSHAKE_WAIT, handshake).await;
        shaken.map_err(|_| self.refuse(Reason::Timeout))
    }

    async fn start_http1<I>(
        &self,
        io: I,
        room: &Arc<Room>,
    ) -> Result<http1::SendRequest<Flow>, Refused>
    where
        I: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let handshake = http1::Builder::new()
            .max_buf_size(HTTP1_BUFFER_BYTES_MAX)
            .handshake(TokioIo::new(io))
            .await;
        let (sender, connection) = handshake.map_err(|_| self.refuse(Reason::UpstreamFailed))?;
        let room = Arc::clone(room);
        self.leash.spawn(async move {
            // How it ends its requests hear.
            drop(connection.with_upgrades().await);
            drop(room);
        });
        Ok(sender)
    }

    async fn start_http2(
        &self,
        io: TlsStream<TcpStream>,
        room: Arc<Room>,
    ) -> Result<http2::SendRequest<Flow>, Refused> {
        let handshake = http2::Builder::new(self.leash.clone())
            .timer(TokioTimer::new())
            .max_header_list_size(HTTP2_HEADER_BYTES_MAX)
            .initial_stream_window_size(HTTP2_STREAM_WINDOW_BYTES)
            .initial_connection_window_size(HTTP2_CONNECTION_WINDOW_BYTES)
            .handshake(TokioIo::new(io))
            .await;
        let (sender, connection) = handshake.map_err(|_| self.refuse(Reason::UpstreamFailed))?;
        self.leash.spawn(async move {
            drop(connection.await);
            drop(room);
        });
        Ok(sender)
    }
}

enum Sent {
    Answered(Response<Incoming>),
    /// The connection was gone before anything was sent; the request is whole.
    NotAtAll(Request<Flow>),
}

/// Says how long the body is where hyper would take a request for one without (`GET`, `HEAD`), and
/// that `TE` concerns this connection alone (RFC 9110 §10.1.4).
fn frame_for_http1(request: &mut Request<Flow>) {
    let has_body = !request.body().is_end_stream();
    let headers = request.headers_mut();
    if has_body && !headers.contains_key(header::CONTENT_LENGTH) {
        let chunked = HeaderValue::from_static("chunked");
        headers.insert(header::TRANSFER_ENCODING, chunked);
    }
    if headers.contains_key(header::TE) && !headers.contains_key(header::UPGRADE) {
        headers.insert(header::CONNECTION, HeaderValue::from_static("te"));
    }
}

fn path_of<B>(request: &Request<B>) -> PathAndQuery {
    let path = request.uri().path_and_query().cloned();
    path.unwrap_or_else(|| PathAndQuery::from_static("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::leash::Leash;
    use crate::policy::{Settings, admit};
    use crate::testing::{Fixture, configured};
    use box_api::egress::{HostName, HostPattern, Policy};
    use rustls::RootCertStore;

    #[tokio::test]
    async fn each_connection_to_a_host_but_the_first_needs_room() {
        let allow = vec![HostPattern::parse("ok.test").unwrap()];
        let settings = Settings {
            policy: Policy {
                allow,
                ..Policy::nothing()
            },
            bindings: Vec::new(),
            logins: crate::intercept::login::book::BoxLogins::default(),
        };
        let allowed = admit(&settings, &HostName::parse("ok.test").unwrap(), 80).unwrap();
        let trusted = configured(&RootCertStore::empty(), None);
        // A fixture has room for a hundred connections of all boxes.
        let fixture = Fixture::new(settings, Some(trusted), Vec::new());
        let leash = Leash::new();
        let way = Way {
            ctx: Arc::clone(&fixture.ctx),
            configured: fixture.ctx.configured().unwrap(),
            allowed,
            security: Security::Plain,
            seed: None,
        };
        let upstream = Upstream::new(way, leash.end());
        let mut held: Vec<Arc<Room>> = std::iter::from_fn(|| upstream.room().ok()).collect();
        assert_eq!(held.len(), 101);
        let refused = upstream.room().unwrap_err();
        assert_eq!(refused.reason, Reason::TooManyConnections);
        held.pop();
        assert!(upstream.room().is_ok(), "room comes back");
    }
}
