//! One client: frames in, frames and descriptors out.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use box_api::control::{ClientMessage, FRAME_BYTES_MAX, Reply, Request, Welcome};
use box_api::page::Begun;
use box_runtime::Progress;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::time::timeout;
use zeroize::Zeroizing;

const LENGTH_BYTES: usize = 4;
const READ_BYTES: usize = 64 << 10;
/// Three streams at most go with one frame.
const DESCRIPTORS_MAX: usize = 3;
/// Longest a client may leave unread what was sent. Long, because a person may have stopped their
/// terminal; what is behind it waits in the journal, not in memory.
const SEND_DEADLINE: Duration = Duration::from_hours(1);
/// Lines of progress that may wait to be sent; more are left out.
const PROGRESS_QUEUED_MAX: usize = 64;

/// Why nothing more is said to a client.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    #[error("the connection broke")]
    Io(#[from] io::Error),
    #[error("the client is gone")]
    Gone,
    #[error("the client took too long")]
    TooSlow,
    #[error("the client sent a frame of {bytes} bytes")]
    TooLong { bytes: usize },
    #[error("the client sent what is no message")]
    Malformed(#[from] serde_json::Error),
}

/// What is between a request and whoever made it.
#[derive(Debug)]
enum Wire {
    Socket(UnixStream),
    /// A page, which is told how a request ended and no more.
    Page(PageWire),
    /// Somebody in this process who hears every reply and says what a client says.
    Spoken(Spoken),
}

/// Both ends of a client that is no socket.
#[derive(Debug)]
pub(crate) struct Spoken {
    pub(crate) said: mpsc::Sender<Reply>,
    pub(crate) heard: mpsc::Receiver<ClientMessage>,
}

/// A request of a page.
#[derive(Debug, Default)]
pub(crate) struct PageWire {
    /// Told once a turn has begun; nobody looks on after that.
    pub(crate) begun: Option<mpsc::Sender<Begun>>,
    /// A file that comes with the request.
    pub(crate) pieces: Option<mpsc::Receiver<Vec<u8>>>,
}

impl PageWire {
    fn hear(&self, reply: &Reply) -> Result<(), ClientError> {
        let (
            Some(begun),
            Reply::Thread {
                box_id,
                name,
                thread,
            },
        ) = (&self.begun, reply)
        else {
            return Ok(());
        };
        let turn = Begun {
            box_id: *box_id,
            name: name.clone(),
            thread: *thread,
        };
        // The page may be gone; the turn goes on.
        drop(begun.try_send(turn));
        Err(ClientError::Gone)
    }

    async fn message(&mut self) -> Option<ClientMessage> {
        match &mut self.pieces {
            Some(pieces) => pieces.recv().await.map(|piece| ClientMessage::Piece {
                base64: STANDARD.encode(piece),
            }),
            None => std::future::pending().await,
        }
    }
}

/// One client.
#[derive(Debug)]
pub(crate) struct Client {
    wire: Wire,
    /// What was received and is not taken yet. May hold a secret.
    inbox: Zeroizing<Vec<u8>>,
}

impl Client {
    pub(super) fn new(stream: UnixStream) -> Self {
        Self {
            wire: Wire::Socket(stream),
            inbox: Zeroizing::default(),
        }
    }

    pub(crate) fn page(wire: PageWire) -> Self {
        Self {
            wire: Wire::Page(wire),
            inbox: Zeroizing::default(),
        }
    }

    pub(crate) fn spoken(spoken: Spoken) -> Self {
        Self {
            wire: Wire::Spoken(spoken),
            inbox: Zeroizing::default(),
        }
    }

    /// The first frame, in time.
    pub(super) async fn first<T: DeserializeOwned>(
        &mut self,
        deadline: Duration,
    ) -> Result<T, ClientError> {
        let frame = timeout(deadline, self.frame())
            .await
            .map_err(|_| ClientError::TooSlow)??;
        Ok(serde_json::from_slice(&frame.ok_or(ClientError::Gone)?)?)
    }

    /// What the client wants; `None` when it wants nothing.
    pub(super) async fn request(&mut self) -> Result<Option<Request>, ClientError> {
        match self.frame().await? {
            Some(frame) => Ok(Some(serde_json::from_slice(&frame)?)),
            None => Ok(None),
        }
    }

    /// What the client says while its request runs; `None` when it is gone. May be cancelled:
    /// nothing is lost.
    pub(super) async fn message(&mut self) -> Result<Option<ClientMessage>, ClientError> {
        match &mut self.wire {
            Wire::Page(page) => return Ok(page.message().await),
            Wire::Spoken(spoken) => return Ok(spoken.heard.recv().await),
            Wire::Socket(_) => {}
        }
        match self.frame().await? {
            Some(frame) => Ok(Some(serde_json::from_slice(&frame)?)),
            None => Ok(None),
        }
    }

    /// The next frame; `None` at the end, also in the middle of one.
    async fn frame(&mut self) -> Result<Option<Zeroizing<Vec<u8>>>, ClientError> {
        loop {
            if let Some(frame) = self.take()? {
                return Ok(Some(frame));
            }
            let Wire::Socket(stream) = &self.wire else {
                return Ok(None);
            };
            stream.readable().await?;
            // Grown ahead of reading, and by moving what is there, never by a copy left behind.
            let end = self.inbox.len();
            grow(&mut self.inbox, end + READ_BYTES);
            let read = stream.try_read(&mut self.inbox[end..]);
            self.inbox
                .truncate(end + read.as_ref().map_or(0, |count| *count));
            match read {
                Ok(0) => return Ok(None),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn take(&mut self) -> Result<Option<Zeroizing<Vec<u8>>>, ClientError> {
        let Some((length, rest)) = self.inbox.split_first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let bytes = u32::from_le_bytes(*length) as usize;
        if bytes > FRAME_BYTES_MAX {
            return Err(ClientError::TooLong { bytes });
        }
        let Some(frame) = rest.get(..bytes) else {
            return Ok(None);
        };
        let frame = Zeroizing::new(frame.to_vec());
        let left = Zeroizing::new(self.inbox[LENGTH_BYTES + bytes..].to_vec());
        self.inbox = left;
        Ok(Some(frame))
    }

    pub(super) async fn greet(&self, welcome: &Welcome) -> Result<(), ClientError> {
        self.send(welcome).await
    }

    pub(super) async fn reply(&self, reply: &Reply) -> Result<(), ClientError> {
        match &self.wire {
            Wire::Page(page) => page.hear(reply),
            Wire::Spoken(spoken) => {
                let saying = spoken.said.send(reply.clone());
                let said = timeout(SEND_DEADLINE, saying).await;
                said.map_err(|_| ClientError::TooSlow)?
                    .map_err(|_| ClientError::Gone)
            }
            Wire::Socket(_) => self.send(reply).await,
        }
    }

    /// [`Reply::Streams`] with the descriptors beside its first byte.
    pub(super) async fn streams(&self, streams: &[OwnedFd]) -> Result<(), ClientError> {
        let Wire::Socket(stream) = &self.wire else {
            return Err(ClientError::Gone);
        };
        let frame = framed(&Reply::Streams)?;
        let borrowed: Vec<BorrowedFd<'_>> = streams.iter().map(OwnedFd::as_fd).collect();
        let first = stream.async_io(Interest::WRITABLE, || {
            let mut space =
                [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
            let mut ancillary = SendAncillaryBuffer::new(&mut space);
            if !ancillary.push(SendAncillaryMessage::ScmRights(&borrowed)) {
                return Err(io::Error::other("too many descriptors for one frame"));
            }
            let frame = [IoSlice::new(&frame)];
            Ok(sendmsg(
                stream,
                &frame,
                &mut ancillary,
                SendFlags::NOSIGNAL,
            )?)
        });
        let sent = timeout(SEND_DEADLINE, first)
            .await
            .map_err(|_| ClientError::TooSlow)??;
        self.write(&frame[sent..]).await
    }

    /// [`Reply::Output`]
    pub(super) async fn output(&self, piece: &[u8]) -> Result<(), ClientError> {
        self.reply(&Reply::Output {
            base64: STANDARD.encode(piece),
        })
        .await
    }

    async fn send(&self, message: &impl Serialize) -> Result<(), ClientError> {
        self.write(&framed(message)?).await
    }

    async fn write(&self, bytes: &[u8]) -> Result<(), ClientError> {
        let writing = self.write_all(bytes);
        timeout(SEND_DEADLINE, writing)
            .await
            .map_err(|_| ClientError::TooSlow)?
    }

    async fn write_all(&self, mut bytes: &[u8]) -> Result<(), ClientError> {
        let Wire::Socket(stream) = &self.wire else {
            return Ok(());
        };
        while !bytes.is_empty() {
            stream.writable().await?;
            match stream.try_write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Does `work` and tells the client how far it is. A client that is gone is no reason to stop:
    /// what was begun is finished.
    pub(super) async fn with_progress<F: Future>(
        &self,
        work: impl FnOnce(Arc<dyn Progress>) -> F,
    ) -> F::Output {
        let (lines, mut said) = mpsc::channel::<Reply>(PROGRESS_QUEUED_MAX);
        let mut work = std::pin::pin!(work(Arc::new(Lines(lines))));
        loop {
            tokio::select! {
                biased;
                Some(line) = said.recv() => self.tell(line).await,
                done = &mut work => {
                    while let Ok(line) = said.try_recv() {
                        self.tell(line).await;
                    }
                    return done;
                }
            }
        }
    }

    async fn tell(&self, line: Reply) {
        if let Err(error) = self.reply(&line).await {
            tracing::debug!(%error, "a client was not told how far it is");
        }
    }
}

/// Progress on its way to a client.
struct Lines(mpsc::Sender<Reply>);

impl Progress for Lines {
    fn say(&self, text: &str) {
        // A client that reads slowly gets fewer lines.
        let text = text.to_owned();
        drop(self.0.try_send(Reply::Progress { text }));
    }

    fn note(&self, text: &str) {
        let text = text.to_owned();
        drop(self.0.try_send(Reply::Note { text }));
    }
}

fn grow(inbox: &mut Zeroizing<Vec<u8>>, bytes: usize) {
    if inbox.capacity() < bytes {
        let mut larger = Zeroizing::new(Vec::with_capacity(bytes.next_power_of_two()));
        larger.extend_from_slice(inbox);
        *inbox = larger;
    }
    inbox.resize(bytes, 0);
}

fn framed(message: &impl Serialize) -> Result<Vec<u8>, ClientError> {
    let mut frame = vec![0; LENGTH_BYTES];
    serde_json::to_writer(&mut frame, message)?;
    let bytes = frame.len() - LENGTH_BYTES;
    let length = u32::try_from(bytes)
        .ok()
        .filter(|_| bytes <= FRAME_BYTES_MAX);
    let length = length.ok_or(ClientError::TooLong { bytes })?;
    frame[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    Ok(frame)
}
