//! Streams that go on for long, and those that go both ways at once: gRPC, server-sent events,
//! `WebSockets` over HTTP/2.

use super::origin::{Head, head_of};
use super::{BEARER, DOORS, Door, played_by};
use crate::client::request;
use crate::world::SECRET;
use box_fakes::rig::Handler;
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::{http1, http2};
use hyper::ext::Protocol;
use hyper::server::conn::http2 as server;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;

/// A body that is written while it is sent.
struct Pipe(mpsc::Receiver<Frame<Bytes>>);

impl Pipe {
    fn new() -> (mpsc::Sender<Frame<Bytes>>, Self) {
        let (pieces, inbox) = mpsc::channel(1);
        (pieces, Self(inbox))
    }
}

impl Body for Pipe {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|frame| frame.map(Ok))
    }
}

/// Opens a WebSocket over HTTP/2; gives the head of the answer and the stream.
pub(crate) async fn extended_connect<S>(
    stream: S,
    bearer: &str,
) -> (http::response::Parts, TokioIo<hyper::upgrade::Upgraded>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let io = TokioIo::new(stream);
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
    // Until the settings have come, the client does not know that it may.
    while !connection.is_extended_connect_protocol_enabled() {
        tokio::task::yield_now().await;
    }
    tokio::spawn(connection);
    let request = Request::connect("https://cred.test/ws")
        .extension(Protocol::from_static("websocket"))
        .header("authorization", bearer)
        .header("sec-websocket-version", "13")
        .header("sec-websocket-protocol", "chat")
        .body(Empty::<Bytes>::new())
        .unwrap();
    let mut answer = sender.send_request(request).await.unwrap();
    let upgrade = hyper::upgrade::on(&mut answer);
    let (parts, _) = answer.into_parts();
    (parts, TokioIo::new(upgrade.await.unwrap()))
}

/// The trailers of the answer to a `GET` over HTTP/2.
pub(crate) async fn trailers_of<S>(stream: S, headers: &[(&str, &str)]) -> HeaderMap
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let io = TokioIo::new(stream);
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
    tokio::spawn(connection);
    let mut get = request("GET", "cred.test", "https://cred.test/", headers);
    get.headers_mut().remove("host");
    let answer = sender.send_request(get).await.unwrap();
    let body = answer.into_body().collect().await.unwrap();
    body.trailers().cloned().unwrap_or_default()
}

/// What two requests over one connection are answered.
pub(crate) async fn two_requests<S>(stream: S, alpn: &str) -> (String, String)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    async fn text(answer: Response<Incoming>) -> String {
        let body = answer.into_body().collect().await.unwrap();
        String::from_utf8(body.to_bytes().to_vec()).unwrap()
    }
    let io = TokioIo::new(stream);
    if alpn == "h2" {
        let (mut sender, connection) =
            http2::handshake::<_, _, Full<Bytes>>(TokioExecutor::new(), io)
                .await
                .unwrap();
        tokio::spawn(connection);
        let mut both = Vec::new();
        for path in ["https://cred.test/1", "https://cred.test/2"] {
            let get = Request::get(path).body(Full::default()).unwrap();
            both.push(text(sender.send_request(get).await.unwrap()).await);
        }
        (both.remove(0), both.remove(0))
    } else {
        let (mut sender, connection) = http1::handshake(io).await.unwrap();
        tokio::spawn(connection);
        let first = sender
            .send_request(request("GET", "cred.test", "/1", &[]))
            .await;
        let first = text(first.unwrap()).await;
        sender.ready().await.unwrap();
        let second = sender
            .send_request(request("GET", "cred.test", "/2", &[]))
            .await;
        (first, text(second.unwrap()).await)
    }
}

/// Answers each message as it comes, then ends with these trailers.
async fn answered(mut asked: Incoming, pieces: mpsc::Sender<Frame<Bytes>>, end: HeaderMap) {
    while let Some(Ok(frame)) = asked.frame().await {
        // The end may be a frame of its own.
        if let Some(data) = frame.data_ref().filter(|data| !data.is_empty()) {
            let answer = [b"re: ", data.as_ref()].concat();
            drop(pieces.send(Frame::data(answer.into())).await);
        }
    }
    drop(pieces.send(Frame::trailers(end)).await);
}

/// Answers each message as it comes, and ends with the status gRPC ends with.
fn grpc_server() -> Handler {
    Handler::new(|stream| async move {
        let service = service_fn(|request: Request<Incoming>| async move {
            let bearer = format!("Bearer {SECRET}");
            let fine = request.headers()["te"] == "trailers"
                && request.headers()["authorization"] == bearer.as_str();
            let (pieces, body) = Pipe::new();
            let mut end = HeaderMap::new();
            let status = if fine { "0" } else { "16" };
            end.insert("grpc-status", status.parse().unwrap());
            end.insert("grpc-message", bearer.parse().unwrap());
            tokio::spawn(answered(request.into_body(), pieces, end));
            let mut answer = Response::new(body);
            let kind = "application/grpc".parse().unwrap();
            answer.headers_mut().insert("content-type", kind);
            Ok::<_, Infallible>(answer)
        });
        let io = TokioIo::new(stream);
        let connection = server::Builder::new(TokioExecutor::new()).serve_connection(io, service);
        // How a client leaves is its own affair.
        drop(connection.await);
    })
}

#[test]
fn grpc_streams_both_ways_and_ends_with_its_status() {
    let (_world, inside) = played_by(&["h2"], grpc_server());
    for door in DOORS {
        let (heard, trailers) = inside.run(move |client| async move {
            let io = TokioIo::new(door.opened(&client, "h2").await);
            let (mut sender, connection) =
                http2::handshake(TokioExecutor::new(), io).await.unwrap();
            tokio::spawn(connection);
            let (pieces, body) = Pipe::new();
            let call = Request::post("https://cred.test/pkg.Service/Call")
                .header("content-type", "application/grpc")
                .header("te", "trailers")
                .header("authorization", BEARER)
                .body(body)
                .unwrap();
            let mut answer = sender.send_request(call).await.unwrap().into_body();
            let mut heard = Vec::new();
            // Each message is sent once the one before it was answered.
            for message in ["one", "two", "three"] {
                pieces.send(Frame::data(message.into())).await.unwrap();
                let frame = answer.frame().await.unwrap().unwrap();
                heard.push(frame.into_data().unwrap());
            }
            drop(pieces);
            let end = answer.frame().await.unwrap().unwrap();
            (heard, end.into_trailers().unwrap())
        });
        assert_eq!(heard, ["re: one", "re: two", "re: three"], "{door:?}");
        assert_eq!(trailers["grpc-status"], "0");
        assert_eq!(trailers["grpc-message"], BEARER, "scrubbed like a header");
    }
}

/// Sends an event for every byte the test says on another way, and ends after the last.
fn events(steps: std::sync::Arc<tokio::sync::Mutex<mpsc::Receiver<()>>>) -> Handler {
    Handler::new(move |mut stream| {
        let steps = std::sync::Arc::clone(&steps);
        async move {
            let _asked: Head = head_of(&mut stream).await;
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                Transfer-Encoding: chunked\r\n\r\n";
            drop(stream.write_all(head.as_bytes()).await);
            for number in 0..5 {
                // The next one is sent once the box has this one.
                steps.lock().await.recv().await.unwrap();
                let event = format!("9\r\ndata: {number}\n\n\r\n");
                drop(stream.write_all(event.as_bytes()).await);
            }
            drop(stream.write_all(b"0\r\n\r\n").await);
            head_of(&mut stream).await;
        }
    })
}

#[test]
fn events_arrive_one_by_one_over_both_versions() {
    for alpn in ["http/1.1", "h2"] {
        let (step, steps) = mpsc::channel(1);
        let steps = std::sync::Arc::new(tokio::sync::Mutex::new(steps));
        let (_world, inside) = played_by(&["http/1.1"], events(steps));
        let heard = inside.run(move |client| async move {
            let stream = Door::Transparent.opened(&client, alpn).await;
            let io = TokioIo::new(stream);
            let mut answer = if alpn == "h2" {
                let (mut sender, connection) =
                    http2::handshake(TokioExecutor::new(), io).await.unwrap();
                tokio::spawn(connection);
                let get = Request::get("https://cred.test/").body(Empty::<Bytes>::new());
                sender.send_request(get.unwrap()).await.unwrap().into_body()
            } else {
                let (mut sender, connection) = http1::handshake(io).await.unwrap();
                tokio::spawn(connection);
                let get = request("GET", "cred.test", "/", &[]);
                sender.send_request(get).await.unwrap().into_body()
            };
            let mut heard = Vec::new();
            for _ in 0..5 {
                step.send(()).await.unwrap();
                let frame = answer.frame().await.unwrap().unwrap();
                heard.push(String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap());
            }
            heard
        });
        let expected: Vec<String> = (0..5).map(|number| format!("data: {number}\n\n")).collect();
        assert_eq!(heard, expected, "{alpn}");
    }
}
