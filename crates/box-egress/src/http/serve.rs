//! Serves one connection of a box: HTTP/1.1 or HTTP/2, with limits on what a peer can make us keep.

use super::body::Flow;
use super::gate::Gate;
use super::leash::LeashEnd;
use crate::limits::{HEAD_WAIT, TUNNEL_IDLE};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use std::convert::Infallible;
use tokio::io::{AsyncRead, AsyncWrite};

const HTTP1_BUFFER_BYTES_MAX: usize = 64 << 10;
const HTTP2_STREAMS_MAX: u32 = 128;
const HTTP2_HEADER_BYTES_MAX: u32 = 64 << 10;
const HTTP2_STREAM_WINDOW_BYTES: u32 = 256 << 10;
const HTTP2_CONNECTION_WINDOW_BYTES: u32 = 1 << 20;

/// How many requests a connection may bring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    /// One; whatever follows is not read. For plain HTTP, whose first head was judged by us.
    OneRequest,
    /// Many, in the protocol that was agreed.
    KeepAlive(Speaks),
}

/// What was agreed in the TLS handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaks {
    Http1,
    Http2,
}

impl Speaks {
    /// By the protocol the handshake chose; without one it is HTTP/1.1 (RFC 7301 §3.2).
    pub(crate) fn agreed(alpn: Option<&[u8]>) -> Self {
        match alpn {
            Some(b"h2") => Self::Http2,
            _ => Self::Http1,
        }
    }
}

/// Answers requests until the peer is done. Errors end the connection and are nobody's concern.
pub(crate) async fn serve<I, H, F>(io: I, life: Life, leash: LeashEnd, handler: H)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Fn(Request<Incoming>) -> F + Send + Sync + 'static,
    F: Future<Output = Response<Flow>> + Send + 'static,
{
    match life {
        Life::KeepAlive(Speaks::Http1) => run(Gate::new(io), life, leash, handler).await,
        Life::OneRequest | Life::KeepAlive(Speaks::Http2) => run(io, life, leash, handler).await,
    }
}

async fn run<I, H, F>(io: I, life: Life, leash: LeashEnd, handler: H)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Fn(Request<Incoming>) -> F + Send + Sync + 'static,
    F: Future<Output = Response<Flow>> + Send + 'static,
{
    let mut builder = auto::Builder::new(leash);
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(match life {
            Life::OneRequest => HEAD_WAIT,
            // Counts between two requests as well, and clients keep connections long.
            Life::KeepAlive(_) => TUNNEL_IDLE,
        })
        .keep_alive(life != Life::OneRequest)
        .max_buf_size(HTTP1_BUFFER_BYTES_MAX)
        .auto_date_header(false);
    builder
        .http2()
        .timer(TokioTimer::new())
        .auto_date_header(false)
        .enable_connect_protocol()
        .max_concurrent_streams(HTTP2_STREAMS_MAX)
        .max_header_list_size(HTTP2_HEADER_BYTES_MAX)
        .initial_stream_window_size(HTTP2_STREAM_WINDOW_BYTES)
        .initial_connection_window_size(HTTP2_CONNECTION_WINDOW_BYTES);
    let service = service_fn(move |request| {
        let response = handler(request);
        async move { Ok::<_, Infallible>(response.await) }
    });
    let builder = match life {
        Life::OneRequest | Life::KeepAlive(Speaks::Http1) => builder.http1_only(),
        Life::KeepAlive(Speaks::Http2) => builder.http2_only(),
    };
    drop(
        builder
            .serve_connection_with_upgrades(TokioIo::new(io), service)
            .await,
    );
}
