//! A body of which so much is kept back as must be seen before it may pass.

use super::Room;
use super::why::Why;
use crate::http::body::Flow;
use bytes::Bytes;
use http::header;
use http::request::Parts;
use hyper::body::{Body as _, Incoming};
use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;
use tokio::time::timeout;

/// Most of a push that is kept back while it is shown that it loses no commit.
pub(super) const PUSH_BYTES_MAX: usize = 32 << 20;
/// Longest body of JSON that is judged: what GitHub takes of a file, and a third more.
pub(super) const JSON_BYTES_MAX: usize = 16 << 20;
/// Most of a refused body that is read, so that whoever sends it comes to hear the answer.
const DRAINED_BYTES_MAX: usize = 64 << 20;
/// How long the next piece of a body that is kept back may take: git counts and packs meanwhile.
const PIECE_WAIT: Duration = Duration::from_mins(5);

pub(super) struct Held {
    bytes: Vec<u8>,
    rest: Option<Incoming>,
    bytes_max: usize,
}

impl Held {
    pub(super) fn new(body: Incoming, bytes_max: usize) -> Self {
        Self {
            bytes: Vec::new(),
            rest: Some(body),
            bytes_max,
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Takes the next piece; `false` at the end of the body.
    pub(super) async fn more(&mut self) -> Result<bool, Why> {
        match self.piece().await? {
            None => Ok(false),
            Some(piece) => {
                if self.bytes.len() + piece.len() > self.bytes_max {
                    let mebibytes = self.bytes_max >> 20;
                    return Err(Why::TooLong { mebibytes });
                }
                self.bytes.extend_from_slice(&piece);
                Ok(true)
            }
        }
    }

    pub(super) async fn all(&mut self) -> Result<(), Why> {
        while self.more().await? {}
        Ok(())
    }

    async fn piece(&mut self) -> Result<Option<Bytes>, Why> {
        loop {
            let Some(rest) = &mut self.rest else {
                return Ok(None);
            };
            let frame = poll_fn(|cx| Pin::new(&mut *rest).poll_frame(cx));
            let frame = match timeout(PIECE_WAIT, frame).await {
                Ok(Some(Ok(frame))) => frame,
                Ok(None) => {
                    self.rest = None;
                    continue;
                }
                Ok(Some(Err(_))) | Err(_) => return Err(Why::Broken),
            };
            // Trailers end a body and are not passed on.
            let data = frame.into_data().unwrap_or_default();
            if !data.is_empty() {
                return Ok(Some(data));
            }
        }
    }

    /// Unfolds what came under `content-encoding: gzip`, whole, and says so in the head.
    pub(super) async fn unzip(&mut self, parts: &mut Parts) -> Result<(), Why> {
        let Some(encoding) = parts.headers.get(header::CONTENT_ENCODING) else {
            return Ok(());
        };
        let unclear = Why::Unclear("a push is sent as it is, or as gzip");
        let is_gzip = encoding == "gzip" || encoding == "x-gzip";
        if !is_gzip
            || parts
                .headers
                .get_all(header::CONTENT_ENCODING)
                .iter()
                .count()
                > 1
        {
            return Err(unclear);
        }
        self.all().await?;
        let folded = std::mem::take(&mut self.bytes);
        self.bytes = unzipped(&folded, self.bytes_max)?;
        parts.headers.remove(header::CONTENT_ENCODING);
        parts.headers.remove(header::CONTENT_LENGTH);
        Ok(())
    }

    /// Lets everything go on.
    pub(super) fn release(self, room: Room) -> Flow {
        Flow::held(self.bytes.into(), self.rest, Box::new(room))
    }

    /// Reads what is still coming and throws it away.
    pub(super) async fn drain(mut self) {
        self.bytes = Vec::new();
        let mut left = DRAINED_BYTES_MAX;
        while let Ok(Some(piece)) = self.piece().await {
            left = left.saturating_sub(piece.len());
            if left == 0 {
                return;
            }
        }
    }
}

/// One member and nothing behind it: readers disagree about more (RFC 1952 §2.2).
pub(super) fn unzipped(folded: &[u8], bytes_max: usize) -> Result<Vec<u8>, Why> {
    use std::io::{BufRead as _, Read as _};
    let unclear = |_| Why::Unclear("the body is no gzip");
    let mut decoder = flate2::bufread::GzDecoder::new(folded);
    let mut out = Vec::new();
    let limit = bytes_max as u64 + 1;
    (&mut decoder)
        .take(limit)
        .read_to_end(&mut out)
        .map_err(unclear)?;
    if out.len() > bytes_max {
        return Err(Why::TooLong {
            mebibytes: bytes_max >> 20,
        });
    }
    let mut rest = decoder.into_inner();
    if rest.fill_buf().map_err(unclear)?.is_empty() {
        Ok(out)
    } else {
        Err(Why::Unclear("something stands behind the gzip"))
    }
}
