//! Socket options, and a stream that first gives what was read from it before.

use crate::tally::Tally;
use bytes::{Buf as _, Bytes};
use rustix::net::sockopt;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, copy, sink};
use tokio::net::TcpStream;
use tokio::time::timeout;

const KEEPALIVE_AFTER: Duration = Duration::from_mins(1);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(20);
const KEEPALIVE_PROBES: u32 = 6;
/// Time a client has to take note of an answer that ends the connection.
const DRAIN_WAIT: Duration = Duration::from_secs(2);

/// No delay, and probes that find out when the other side is gone. A socket that cannot be tuned
/// works all the same.
pub(crate) fn tune(stream: &TcpStream) {
    drop(stream.set_nodelay(true));
    let _ = sockopt::set_socket_keepalive(stream, true);
    let _ = sockopt::set_tcp_keepidle(stream, KEEPALIVE_AFTER);
    let _ = sockopt::set_tcp_keepintvl(stream, KEEPALIVE_EVERY);
    let _ = sockopt::set_tcp_keepcnt(stream, KEEPALIVE_PROBES);
}

/// Closes with a reset instead of an orderly end, so that the other side sees a failure.
pub(crate) fn reset(stream: TcpStream) {
    let _ = sockopt::set_socket_linger(&stream, Some(Duration::ZERO));
    drop(stream);
}

/// Reads what still comes and throws it away, for a moment. Closing a socket with something unread
/// in it resets the connection, and takes what was written but not yet delivered with it.
pub(crate) async fn drain(mut stream: TcpStream) {
    // Whatever the client still says, it is not heard.
    drop(timeout(DRAIN_WAIT, copy(&mut stream, &mut sink())).await);
}

/// A second descriptor for the same connection, to be drained once the first is closed.
pub(crate) fn second(stream: &TcpStream) -> Option<OwnedFd> {
    stream.as_fd().try_clone_to_owned().ok()
}

/// See [`drain`].
pub(crate) async fn drain_second(second: Option<OwnedFd>) {
    let stream = second.map(|second| TcpStream::from_std(second.into()));
    if let Some(Ok(stream)) = stream {
        drain(stream).await;
    }
}

/// A descriptor that can be waited on.
///
/// # Errors
/// When epoll does not take this kind of descriptor.
#[expect(
    deprecated,
    reason = "the successor is unsafe; an `OwnedFd` is all it asks for"
)]
pub(crate) fn watched(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(fd, interest)
}

/// A connection together with the bytes that were read from it already.
pub(crate) struct Rewound {
    early: Bytes,
    stream: TcpStream,
    tally: Tally,
}

impl Rewound {
    pub(crate) fn new(early: Bytes, stream: TcpStream) -> Self {
        Self::counted(early, stream, Tally::default())
    }

    /// What passes is counted, the bytes read before included.
    pub(crate) fn counted(early: Bytes, stream: TcpStream, tally: Tally) -> Self {
        tally.sent(early.len() as u64);
        Self {
            early,
            stream,
            tally,
        }
    }

    fn count(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = written {
            self.tally.received(bytes as u64);
        }
        written
    }
}

impl AsyncRead for Rewound {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.early.is_empty() {
            let before = buf.filled().len();
            let read = Pin::new(&mut self.stream).poll_read(cx, buf);
            self.tally.sent((buf.filled().len() - before) as u64);
            return read;
        }
        let bytes = self.early.len().min(buf.remaining());
        buf.put_slice(&self.early[..bytes]);
        self.early.advance(bytes);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Rewound {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.count(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.count(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
        Poll::Ready(Ok(()))
    }
}
