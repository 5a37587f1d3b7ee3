//! Stands before the HTTP library where many requests come over one connection of HTTP/1.1: reads
//! each head as strictly as the front door does, and follows each body to its end to know where
//! the next head begins. The library alone would take two lengths, or lines without a CR
//! (catalogue §2.5).

use super::head::{self, BodyLength, HeadError};
use crate::limits::HEAD_WAIT;
use bytes::{Buf as _, Bytes, BytesMut};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Longest head of a request that is not a proxy's to read.
const HEAD_BYTES_MAX: usize = 64 << 10;
const TRAILER_BYTES_MAX: usize = 16 << 10;
const SIZE_DIGITS_MAX: usize = 15;
const PIECE_BYTES: usize = 8 << 10;
/// What the library is given in place of a head that is malformed: a request it can read and the
/// relay refuses as such, since it names no host.
const UNREADABLE: &[u8] = b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n";

/// A stream whose bytes were judged.
pub(crate) struct Gate<S> {
    inner: S,
    stage: Stage,
    /// What came and was not judged yet.
    fresh: BytesMut,
    /// How much of a head was looked at.
    looked_at: usize,
    /// What may be read.
    judged: Bytes,
    /// Until when the head that has begun must be there.
    deadline: Option<Pin<Box<Sleep>>>,
}

enum Stage {
    Head,
    Sized(u64),
    Chunked(Chunk),
    /// Another protocol from here on, if the host agrees; if not, the answer closes.
    Open,
    /// A malformed head: nothing is read any more.
    Over,
}

/// Where in a chunked body.
#[derive(Clone, Copy)]
enum Chunk {
    Size {
        digits: usize,
        bytes: u64,
    },
    SizeEnd {
        bytes: u64,
    },
    Data {
        left: u64,
    },
    DataCr,
    DataLf,
    /// In the trailers; how many bytes, and how many of this line.
    Trailer {
        bytes: usize,
        of_line: usize,
    },
    TrailerEnd {
        bytes: usize,
        of_line: usize,
    },
    Done,
}

impl<S> Gate<S> {
    pub(crate) fn new(inner: S) -> Self {
        Self {
            inner,
            stage: Stage::Head,
            fresh: BytesMut::new(),
            looked_at: 0,
            judged: Bytes::new(),
            deadline: None,
        }
    }

    /// Judges what is there. Says whether that led on; if not, more must come first.
    fn advance(&mut self) -> io::Result<bool> {
        if self.fresh.is_empty() {
            return Ok(false);
        }
        let whole = self.fresh.len();
        let passed = match &mut self.stage {
            Stage::Head => return Ok(self.advance_head()),
            Stage::Over => return Ok(false),
            Stage::Open => whole,
            Stage::Sized(left) => {
                let passed = usize::try_from(*left).unwrap_or(usize::MAX).min(whole);
                *left -= passed as u64;
                if *left == 0 {
                    self.stage = Stage::Head;
                }
                passed
            }
            Stage::Chunked(chunk) => {
                let passed = chunk.follow(&self.fresh)?;
                if matches!(chunk, Chunk::Done) {
                    self.stage = Stage::Head;
                }
                passed
            }
        };
        self.judged = self.fresh.split_to(passed).freeze();
        Ok(true)
    }

    fn advance_head(&mut self) -> bool {
        let found = head::end_of_head(&self.fresh, self.looked_at, HEAD_BYTES_MAX);
        self.looked_at = self.fresh.len();
        let head = match found {
            Ok(None) => return false,
            Ok(Some(bytes)) => {
                let raw = self.fresh.split_to(bytes).freeze();
                head::parse(&raw, bytes).map(|head| (head, raw))
            }
            Err(error) => Err(error),
        };
        self.looked_at = 0;
        self.deadline = None;
        // What the library would refuse unread is told to nobody.
        let head = head.and_then(|(head, raw)| match head.target.parse::<http::Uri>() {
            Ok(_) => Ok((head, raw)),
            Err(_) => Err(HeadError::Malformed),
        });
        self.take(head.map(|(head, raw)| (head.body_length(), head.has("upgrade"), raw)));
        true
    }

    fn take(&mut self, head: Result<(BodyLength, bool, Bytes), HeadError>) {
        let Ok((length, changes, raw)) = head else {
            self.judged = Bytes::from_static(UNREADABLE);
            self.stage = Stage::Over;
            return;
        };
        self.judged = raw;
        self.stage = match length {
            BodyLength::Sized(0) | BodyLength::Absent if changes => Stage::Open,
            BodyLength::Sized(0) | BodyLength::Absent => Stage::Head,
            BodyLength::Sized(bytes) => Stage::Sized(bytes),
            BodyLength::Chunked => Stage::Chunked(Chunk::first()),
        };
    }

    fn is_late(&mut self, cx: &mut Context<'_>) -> bool {
        let in_a_head = matches!(self.stage, Stage::Head) && !self.fresh.is_empty();
        if !in_a_head {
            self.deadline = None;
            return false;
        }
        let deadline = self
            .deadline
            .get_or_insert_with(|| Box::pin(sleep(HEAD_WAIT)));
        deadline.as_mut().poll(cx).is_ready()
    }
}

impl Chunk {
    fn first() -> Self {
        Self::Size {
            digits: 0,
            bytes: 0,
        }
    }

    /// How many of these bytes belong to the body, and are well-formed.
    fn follow(&mut self, text: &[u8]) -> io::Result<usize> {
        let mut at = 0;
        while let Some(byte) = text.get(at)
            && !matches!(self, Self::Done)
        {
            let Self::Data { left } = *self else {
                *self = self.step(*byte).ok_or(io::ErrorKind::InvalidData)?;
                at += 1;
                continue;
            };
            let passed = left.min((text.len() - at) as u64);
            at += usize::try_from(passed).unwrap_or(0);
            *self = match left - passed {
                0 => Self::DataCr,
                left => Self::Data { left },
            };
        }
        Ok(at)
    }

    /// No extensions: nobody sends them, and readers differ about where they end.
    fn step(self, byte: u8) -> Option<Self> {
        match (self, byte) {
            (Self::Size { digits, bytes }, _) if byte.is_ascii_hexdigit() => {
                let digit = char::from(byte).to_digit(16)?;
                (digits < SIZE_DIGITS_MAX).then_some(Self::Size {
                    digits: digits + 1,
                    bytes: (bytes << 4) | u64::from(digit),
                })
            }
            (Self::Size { digits, bytes }, b'\r') if digits > 0 => Some(Self::SizeEnd { bytes }),
            (Self::SizeEnd { bytes: 0 }, b'\n') => Some(Self::Trailer {
                bytes: 0,
                of_line: 0,
            }),
            (Self::SizeEnd { bytes }, b'\n') => Some(Self::Data { left: bytes }),
            (Self::DataCr, b'\r') => Some(Self::DataLf),
            (Self::DataLf, b'\n') => Some(Self::first()),
            (Self::Trailer { bytes, of_line }, b'\r') => Some(Self::TrailerEnd { bytes, of_line }),
            (Self::Trailer { bytes, of_line }, _) => {
                let fine = byte == b'\t' || (byte >= b' ' && byte != 0x7f);
                (fine && bytes < TRAILER_BYTES_MAX).then_some(Self::Trailer {
                    bytes: bytes + 1,
                    of_line: of_line + 1,
                })
            }
            (Self::TrailerEnd { of_line: 0, .. }, b'\n') => Some(Self::Done),
            (Self::TrailerEnd { bytes, .. }, b'\n') => Some(Self::Trailer { bytes, of_line: 0 }),
            (
                Self::Size { .. }
                | Self::SizeEnd { .. }
                | Self::Data { .. }
                | Self::DataCr
                | Self::DataLf
                | Self::TrailerEnd { .. }
                | Self::Done,
                _,
            ) => None,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Gate<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if !this.judged.is_empty() {
                let bytes = this.judged.len().min(out.remaining());
                out.put_slice(&this.judged[..bytes]);
                this.judged.advance(bytes);
                return Poll::Ready(Ok(()));
            }
            match this.stage {
                // The answer closes the connection.
                Stage::Over => return Poll::Pending,
                Stage::Open if this.fresh.is_empty() => {
                    return Pin::new(&mut this.inner).poll_read(cx, out);
                }
                Stage::Head | Stage::Sized(_) | Stage::Chunked(_) | Stage::Open => {}
            }
            if this.advance()? {
                continue;
            }
            if this.is_late(cx) {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            let mut piece = [0; PIECE_BYTES];
            let mut piece = ReadBuf::new(&mut piece);
            ready!(Pin::new(&mut this.inner).poll_read(cx, &mut piece))?;
            if piece.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            this.fresh.extend_from_slice(piece.filled());
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Gate<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::pin::pin;
    use tokio::io::AsyncReadExt;

    /// What the library gets to read, until the end or until nothing more may be read.
    async fn passed(bytes: &[u8], size: usize) -> Result<Vec<u8>, io::ErrorKind> {
        let pieces = bytes.chunks(size).map(<[u8]>::to_vec);
        let mut mock = gate_before(pieces.collect());
        let mut all = Vec::new();
        loop {
            let mut piece = [0; 64];
            let mut read = pin!(mock.read(&mut piece));
            // Everything is there already: what is not ready now never will be.
            let now = poll_fn(|cx| Poll::Ready(read.as_mut().poll(cx))).await;
            match now {
                Poll::Pending | Poll::Ready(Ok(0)) => return Ok(all),
                Poll::Ready(Ok(bytes)) => all.extend_from_slice(&piece[..bytes]),
                Poll::Ready(Err(error)) => return Err(error.kind()),
            }
        }
    }

    fn gate_before(pieces: Vec<Vec<u8>>) -> Gate<impl AsyncRead + Unpin> {
        let chained: Box<dyn AsyncRead + Unpin> = pieces.into_iter().rev().fold(
            Box::new(tokio::io::empty()),
            |rest: Box<dyn AsyncRead + Unpin>, piece| {
                Box::new(AsyncReadExt::chain(io::Cursor::new(piece), rest))
            },
        );
        Gate::new(chained)
    }

    #[tokio::test]
    async fn sound_requests_pass_as_they_are_however_they_are_cut() {
        let requests = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n\
            POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nGET /\
            POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\
            5\r\nGET /\r\n0a\r\n0123456789\r\n0\r\nX: y\r\n\r\n\
            GET /d HTTP/1.1\r\nHost: x\r\n\r\n";
        for size in [1, 2, 7, 64, 4096] {
            assert_eq!(passed(requests, size).await.unwrap(), requests, "{size}");
        }
    }

    #[tokio::test]
    async fn second_head_is_judged_like_the_first() {
        let first = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc".as_slice();
        for second in [
            b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
                .as_slice(),
            b"GET / HTTP/1.1\nHost: x\n\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
        ] {
            let all = [first, second].concat();
            let expected = [first, UNREADABLE].concat();
            assert_eq!(passed(&all, 5).await.unwrap(), expected);
        }
    }

    #[tokio::test]
    async fn chunks_have_one_spelling() {
        let head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".as_slice();
        for body in [
            b"5;x=y\r\nhello\r\n".as_slice(),
            b"5 \r\nhello\r\n",
            b" 5\r\nhello\r\n",
            b"5\nhello\r\n",
            b"5\r\nhello\n",
            b"5\r\nhelloX\r\n",
            b"\r\nhello",
            b"0x5\r\nhello\r\n",
            b"-5\r\nhello\r\n",
            b"0000000000000005\r\nhello\r\n",
            b"0\r\nX\n\r\n",
            b"0\r\n\n",
        ] {
            let whole = [head, body].concat();
            let outcome = passed(&whole, 3).await;
            assert_eq!(
                outcome,
                Err(io::ErrorKind::InvalidData),
                "{}",
                body.escape_ascii()
            );
        }
    }

    #[tokio::test]
    async fn what_follows_an_upgrade_is_not_read_as_requests() {
        let both =
            b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n\r\n\x81\x00\n\n".as_slice();
        assert_eq!(passed(both, 9).await.unwrap(), both);
    }
}
