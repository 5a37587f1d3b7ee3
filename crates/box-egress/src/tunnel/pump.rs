//! Copies both ways between two sockets. A buffer exists only while bytes are in flight; a
//! direction that carries much is handed to the kernel (splice).

use super::splice::Spliced;
use crate::limits::TUNNEL_IDLE;
use crate::tally::Tally;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::timeout;

const BUFFER_BYTES: usize = 64 << 10;
/// From here on a direction is worth a pipe.
const SPLICE_AFTER_BYTES: u64 = 256 << 10;

/// Copies until both sides have said all they had to say. One side's end is passed on and the
/// other direction goes on (half-close, catalogue D18).
pub(crate) async fn pump(client: &TcpStream, host: &TcpStream, tally: &Tally) -> io::Result<()> {
    let moved = AtomicU64::new(0);
    let up = Direction {
        from: client,
        to: host,
        moved: &moved,
        tally,
        count: Tally::sent,
    };
    let down = Direction {
        from: host,
        to: client,
        moved: &moved,
        tally,
        count: Tally::received,
    };
    tokio::try_join!(up.run(), down.run())?;
    Ok(())
}

struct Direction<'a> {
    from: &'a TcpStream,
    to: &'a TcpStream,
    /// Bytes of both directions: neither is idle while the other one moves.
    moved: &'a AtomicU64,
    tally: &'a Tally,
    /// Which of the two counts this direction adds to.
    count: fn(&Tally, u64),
}

impl Direction<'_> {
    async fn run(&self) -> io::Result<()> {
        let mut total = 0;
        while total < SPLICE_AFTER_BYTES {
            self.wait_readable().await?;
            match self.copy_what_is_there().await? {
                Copied::End => return self.pass_on_the_end(),
                Copied::Bytes(bytes) => total += bytes,
            }
        }
        match Spliced::new() {
            Some(mut spliced) => self.splice(&mut spliced).await,
            // No pipe to be had: copying works as well, only dearer.
            None => self.copy_to_the_end().await,
        }
    }

    async fn copy_to_the_end(&self) -> io::Result<()> {
        loop {
            self.wait_readable().await?;
            if let Copied::End = self.copy_what_is_there().await? {
                return self.pass_on_the_end();
            }
        }
    }

    /// Copies until nothing more is waiting.
    async fn copy_what_is_there(&self) -> io::Result<Copied> {
        let mut buffer = Vec::with_capacity(BUFFER_BYTES);
        let mut copied = 0;
        loop {
            buffer.clear();
            match self.from.try_read_buf(&mut buffer) {
                Ok(0) => return Ok(Copied::End),
                Ok(bytes) => {
                    self.write_all(&buffer).await?;
                    copied += bytes as u64;
                    self.note(bytes as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Copied::Bytes(copied));
                }
                Err(error) => return Err(error),
            }
            if copied >= SPLICE_AFTER_BYTES {
                return Ok(Copied::Bytes(copied));
            }
        }
    }

    async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.to.try_write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait_writable().await?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn splice(&self, spliced: &mut Spliced) -> io::Result<()> {
        loop {
            self.wait_readable().await?;
            let filled = self
                .from
                .try_io(Interest::READABLE, || spliced.fill(self.from));
            match filled {
                Ok(0) => return self.pass_on_the_end(),
                Ok(bytes) => self.note(bytes as u64),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error),
            }
            self.empty(spliced).await?;
        }
    }

    async fn empty(&self, spliced: &mut Spliced) -> io::Result<()> {
        while !spliced.is_empty() {
            self.wait_writable().await?;
            match self
                .to
                .try_io(Interest::WRITABLE, || spliced.drain(self.to))
            {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn note(&self, bytes: u64) {
        self.moved.fetch_add(bytes, Ordering::Relaxed);
        (self.count)(self.tally, bytes);
    }

    fn pass_on_the_end(&self) -> io::Result<()> {
        match rustix::net::shutdown(self.to, rustix::net::Shutdown::Write) {
            // The other side may be gone already; there is nobody left to tell.
            Ok(()) | Err(rustix::io::Errno::NOTCONN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    async fn wait_readable(&self) -> io::Result<()> {
        self.unless_idle(|| self.from.readable()).await
    }

    async fn wait_writable(&self) -> io::Result<()> {
        self.unless_idle(|| self.to.writable()).await
    }

    async fn unless_idle<F>(&self, wait: impl Fn() -> F) -> io::Result<()>
    where
        F: Future<Output = io::Result<()>>,
    {
        loop {
            let before = self.moved.load(Ordering::Relaxed);
            match timeout(TUNNEL_IDLE, wait()).await {
                Ok(ready) => return ready,
                Err(_) if self.moved.load(Ordering::Relaxed) != before => {}
                Err(_) => return Err(io::ErrorKind::TimedOut.into()),
            }
        }
    }
}

enum Copied {
    Bytes(u64),
    End,
}

#[cfg(test)]
mod tests;
