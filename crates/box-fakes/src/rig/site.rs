//! What an ordinary web server of the internet answers.

use super::internet::Internet;
use super::web::AnswerBody;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Frame, Incoming};
use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// The most `/echo` gives back.
const ECHO_BYTES_MAX: usize = 8 << 20;
/// The most `/bytes/<n>` sends.
const DOWNLOAD_BYTES_MAX: u64 = 4 << 30;
const PIECE: &[u8] = &[b'x'; 64 << 10];

/// A fixed answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    /// 200 with this text.
    pub fn text(body: &str) -> Self {
        Self {
            status: 200,
            headers: Vec::new(),
            body: body.as_bytes().to_vec(),
        }
    }

    #[must_use]
    pub fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

pub(crate) async fn answer(
    internet: Rc<Internet>,
    number: usize,
    name: &str,
    request: Request<Incoming>,
) -> Response<AnswerBody> {
    let path = request.uri().path().to_owned();
    let headers = internet.with(|world| {
        world
            .requests
            .get(number)
            .map(|request| request.headers.clone())
            .unwrap_or_default()
    });
    let (kept, bytes) = read(request.into_body()).await;
    internet.with(|world| world.body_read(number, bytes));
    if let Some(reply) = internet.with(|world| world.replies.get(name).cloned()) {
        return fixed(reply);
    }
    if let Some(count) = path
        .strip_prefix("/bytes/")
        .and_then(|count| count.parse().ok())
    {
        return download(count);
    }
    match path.as_str() {
        "/echo" => whole(StatusCode::OK, kept),
        "/headers" => whole(
            StatusCode::OK,
            serde_json::to_vec(&headers).unwrap_or_default(),
        ),
        _ => whole(StatusCode::OK, format!("hello from {name}\n").into_bytes()),
    }
}

/// The first bytes of a body, and how many it had.
async fn read(mut body: Incoming) -> (Vec<u8>, u64) {
    let (mut kept, mut bytes) = (Vec::new(), 0);
    while let Some(Ok(frame)) = body.frame().await {
        if let Some(data) = frame.data_ref() {
            let room = ECHO_BYTES_MAX.saturating_sub(kept.len()).min(data.len());
            kept.extend_from_slice(data.get(..room).unwrap_or_default());
            bytes += data.len() as u64;
        }
    }
    (kept, bytes)
}

fn fixed(reply: Reply) -> Response<AnswerBody> {
    let mut response = whole(
        StatusCode::from_u16(reply.status).unwrap_or_default(),
        reply.body,
    );
    for (name, value) in reply.headers {
        let name = http::HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, http::HeaderValue::from_str(&value)) {
            response.headers_mut().append(name, value);
        }
    }
    response
}

fn download(bytes: u64) -> Response<AnswerBody> {
    let (body, pieces) = streamed();
    tokio::task::spawn_local(async move {
        let mut left = bytes.min(DOWNLOAD_BYTES_MAX);
        while left > 0 {
            let count = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE.len());
            let piece = Bytes::from_static(PIECE.get(..count).unwrap_or_default());
            if pieces.send(piece).await.is_err() {
                break;
            }
            left -= count as u64;
        }
    });
    Response::new(body)
}

pub(crate) fn whole(status: StatusCode, body: Vec<u8>) -> Response<AnswerBody> {
    let mut response = Response::new(Full::new(Bytes::from(body)).boxed_unsync());
    *response.status_mut() = status;
    response
}

/// A body that is written while it is sent.
pub(crate) fn streamed() -> (AnswerBody, mpsc::Sender<Bytes>) {
    let (pieces, inbox) = mpsc::channel(16);
    (Streamed(inbox).boxed_unsync(), pieces)
}

struct Streamed(mpsc::Receiver<Bytes>);

impl Body for Streamed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0
            .poll_recv(context)
            .map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
    }
}
