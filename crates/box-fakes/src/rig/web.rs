//! Web servers on every address: ports 80 and 443, HTTP/1.1 and HTTP/2.

use super::forge;
use super::internet::Internet;
use super::site;
use super::world::Recorded;
use crate::{model, push, vendors};
use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::LazyConfigAcceptor;

const HANDSHAKE_DEADLINE: Duration = Duration::from_secs(10);

pub(crate) type AnswerBody = UnsyncBoxBody<Bytes, Infallible>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

/// The connection a request came over.
#[derive(Debug, Clone)]
struct Line {
    at: SocketAddr,
    sni: Option<String>,
}

/// Runs hyper's tasks on this thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThisThread;

impl<F: Future<Output: 'static> + 'static> hyper::rt::Executor<F> for ThisThread {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}

pub(crate) async fn serve(
    internet: Rc<Internet>,
    stream: TcpStream,
    at: SocketAddr,
    scheme: Scheme,
) {
    let _no_delay = stream.set_nodelay(true);
    match scheme {
        Scheme::Http => requests(internet, stream, Line { at, sni: None }).await,
        Scheme::Https => {
            let shaken = tokio::time::timeout(HANDSHAKE_DEADLINE, handshake(&internet, stream, at));
            match shaken.await {
                Ok(Ok((stream, line))) => requests(internet, stream, line).await,
                Ok(Err(why)) => internet.note(format!("tls {at}: {why:#}")),
                Err(_) => internet.note(format!("tls {at}: no handshake in time")),
            }
        }
    }
}

/// As whoever the client calls for; without a name, as the address.
async fn handshake(
    internet: &Internet,
    stream: TcpStream,
    at: SocketAddr,
) -> anyhow::Result<(tokio_rustls::server::TlsStream<TcpStream>, Line)> {
    let start = LazyConfigAcceptor::new(rustls::server::Acceptor::default(), stream).await?;
    let sni = start
        .client_hello()
        .server_name()
        .map(str::to_ascii_lowercase);
    let name = sni.clone().unwrap_or_else(|| at.ip().to_string());
    let kind = internet.with(|world| world.leaves.get(&name).copied().unwrap_or_default());
    let stream = start
        .into_stream(internet.authority.server(&name, kind)?)
        .await?;
    internet.note(format!("tls {at} as {name}"));
    Ok((
        stream,
        Line {
            at,
            sni: Some(sni.unwrap_or_default()),
        },
    ))
}

async fn requests<S>(internet: Rc<Internet>, stream: S, line: Line)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request| {
        let (internet, line) = (Rc::clone(&internet), line.clone());
        async move { Ok::<_, Infallible>(answer(internet, &line, request).await) }
    });
    let mut server = auto::Builder::new(ThisThread);
    server.http1().timer(TokioTimer::new());
    server.http2().timer(TokioTimer::new());
    // How a client leaves is its own affair.
    let _end = server.serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(
    internet: Rc<Internet>,
    line: &Line,
    request: Request<Incoming>,
) -> Response<AnswerBody> {
    let recorded = head(&request, line);
    let name = recorded.name.clone();
    let number = internet.with(|world| world.record(recorded));
    if let Some(api) = internet.with(|world| world.model.served_at(&name)) {
        model::answer(internet, api, number, request).await
    } else if internet.with(|world| world.push.contains_key(&name)) {
        push::answer(internet, &name, request)
            .await
            .map(http_body_util::BodyExt::boxed_unsync)
    } else if internet.with(|world| world.vendors.is_open() && !world.replies.contains_key(&name))
        && vendors::HOSTS.contains(&name.as_str())
    {
        vendors::answer(internet, number, &name, request).await
    } else if let Some(forge) = internet.with(|world| world.forges.get(&name).cloned()) {
        forge::answer(internet, number, forge, request).await
    } else {
        site::answer(internet, number, &name, request).await
    }
}

fn head(request: &Request<Incoming>, line: &Line) -> Recorded {
    let of_header = || {
        request
            .headers()
            .get(header::HOST)
            .and_then(|value| value.to_str().ok())
    };
    let authority = request
        .uri()
        .authority()
        .map(http::uri::Authority::as_str)
        .or_else(of_header);
    let authority = authority.unwrap_or_default().to_ascii_lowercase();
    let name = authority
        .rsplit_once(':')
        .map_or(authority.as_str(), |(name, _)| name);
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    Recorded {
        name: name.to_owned(),
        at: line.at,
        sni: line.sni.clone(),
        version: format!("{:?}", request.version()),
        method: request.method().to_string(),
        path: request
            .uri()
            .path_and_query()
            .map_or_else(String::new, ToString::to_string),
        headers: request
            .headers()
            .iter()
            .map(|(key, value)| (key.as_str().to_owned(), text(value)))
            .collect(),
        body_bytes: 0,
        complete: false,
    }
}
