//! Frames of the guest protocol: bytes in, frames out, nothing trusted.

use super::{FRAME_BYTES_MAX, PIECE_BYTES_MAX, Stream};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Length and kind.
const HEAD_BYTES: usize = 5;
/// Stream and offset before the bytes of a piece.
const PIECE_HEAD_BYTES: usize = 9;

/// What a frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// Host: the operation, first frame of a connection.
    Request,
    /// Host: something said later.
    Message,
    /// Either way: a [`Piece`].
    Piece,
    /// Guest.
    Reply,
}

impl FrameKind {
    const fn byte(self) -> u8 {
        match self {
            Self::Request => 1,
            Self::Message => 2,
            Self::Piece => 3,
            Self::Reply => 4,
        }
    }

    fn parse(byte: u8) -> Result<Self, ProtocolError> {
        [Self::Request, Self::Message, Self::Piece, Self::Reply]
            .into_iter()
            .find(|kind| kind.byte() == byte)
            .ok_or(ProtocolError::Kind(byte))
    }
}

/// Why bytes are not a frame, or a frame is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    #[error("a frame of {0} bytes is longer than {FRAME_BYTES_MAX}")]
    TooLong(u64),
    #[error("a frame of no bytes")]
    Empty,
    #[error("a frame of unknown kind {0}")]
    Kind(u8),
    #[error("a frame of kind {got:?} where {wanted:?} belongs")]
    OutOfPlace { wanted: FrameKind, got: FrameKind },
    #[error("a frame that does not parse: {0}")]
    Json(String),
    #[error("a piece of a stream that is not well formed")]
    Piece,
    #[error("the connection ended inside a frame")]
    CutShort,
}

/// One frame, its payload not yet looked into.
#[derive(Clone, PartialEq, Eq)]
pub struct Frame {
    pub kind: FrameKind,
    pub payload: Vec<u8>,
}

// A request's payload may hold credentials of the box.
impl std::fmt::Debug for Frame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Frame({:?}, {} bytes)", self.kind, self.payload.len())
    }
}

impl Frame {
    /// Bytes of a JSON frame of this kind.
    ///
    /// # Errors
    /// [`ProtocolError::TooLong`] when the value is larger than a frame may be.
    pub fn encode<T: Serialize>(kind: FrameKind, value: &T) -> Result<Vec<u8>, ProtocolError> {
        let mut bytes = vec![0; HEAD_BYTES];
        serde_json::to_writer(&mut bytes, value)
            .map_err(|error| ProtocolError::Json(error.to_string()))?;
        let length = bytes.len() - HEAD_BYTES + 1;
        if length > FRAME_BYTES_MAX {
            return Err(ProtocolError::TooLong(length as u64));
        }
        write_head(&mut bytes, kind, length);
        Ok(bytes)
    }

    /// What a JSON frame says, if it is of the kind that belongs here.
    ///
    /// # Errors
    /// [`ProtocolError::OutOfPlace`] and [`ProtocolError::Json`].
    pub fn decode<T: DeserializeOwned>(&self, wanted: FrameKind) -> Result<T, ProtocolError> {
        if self.kind != wanted {
            return Err(ProtocolError::OutOfPlace {
                wanted,
                got: self.kind,
            });
        }
        // The parser's own words may quote the payload; its place in the text does not.
        serde_json::from_slice(&self.payload).map_err(|error| {
            let what = if error.is_data() {
                "unexpected content"
            } else {
                "not JSON"
            };
            ProtocolError::Json(format!("{what} at byte {}", error.column()))
        })
    }
}

fn write_head(bytes: &mut [u8], kind: FrameKind, length: usize) {
    // Callers checked that a length is at most `FRAME_BYTES_MAX`.
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    bytes[4] = kind.byte();
}

/// Some bytes of a stream: `u8` stream (0 stdin, 1 stdout, 2 stderr), `u64` little-endian offset
/// of the first byte, then 1 to [`PIECE_BYTES_MAX`] bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<'a> {
    pub stream: Stream,
    pub offset: u64,
    pub bytes: &'a [u8],
}

impl<'a> Piece<'a> {
    /// Offset after the last byte.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.bytes.len() as u64)
    }

    /// Appends the frame that carries these bytes, given in two halves as a ring holds them.
    /// Bytes beyond [`PIECE_BYTES_MAX`] are the caller's to leave out.
    pub fn write(out: &mut Vec<u8>, stream: Stream, offset: u64, halves: [&[u8]; 2]) {
        let start = out.len();
        let length = 1 + PIECE_HEAD_BYTES + halves[0].len() + halves[1].len();
        out.reserve(length + HEAD_BYTES);
        out.extend_from_slice(&[0; HEAD_BYTES]);
        out.push(match stream {
            Stream::Stdin => 0,
            Stream::Stdout => 1,
            Stream::Stderr => 2,
        });
        out.extend_from_slice(&offset.to_le_bytes());
        out.extend_from_slice(halves[0]);
        out.extend_from_slice(halves[1]);
        write_head(&mut out[start..], FrameKind::Piece, length);
    }

    /// # Errors
    /// [`ProtocolError::Piece`] for anything that is not as this type says, or whose end does not
    /// fit 64 bits.
    pub fn parse(payload: &'a [u8]) -> Result<Self, ProtocolError> {
        let Some((&[stream], rest)) = payload.split_first_chunk::<1>() else {
            return Err(ProtocolError::Piece);
        };
        let Some((offset, bytes)) = rest.split_first_chunk::<8>() else {
            return Err(ProtocolError::Piece);
        };
        let stream = match stream {
            0 => Stream::Stdin,
            1 => Stream::Stdout,
            2 => Stream::Stderr,
            _ => return Err(ProtocolError::Piece),
        };
        let offset = u64::from_le_bytes(*offset);
        let fits = (1..=PIECE_BYTES_MAX).contains(&bytes.len())
            && offset.checked_add(bytes.len() as u64).is_some();
        if fits {
            Ok(Self {
                stream,
                offset,
                bytes,
            })
        } else {
            Err(ProtocolError::Piece)
        }
    }
}

/// Turns what a socket gives into frames. Holds at most one frame and one read.
#[derive(Default)]
pub struct FrameReader {
    buffer: Vec<u8>,
    /// Bytes before this one are taken and wiped.
    taken: usize,
}

impl std::fmt::Debug for FrameReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FrameReader({} bytes waiting)", self.waiting().len())
    }
}

impl FrameReader {
    /// Adds what was read. Take every frame out before the next call.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.taken > 0 {
            self.buffer.drain(..self.taken);
            self.taken = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame, if there is one.
    ///
    /// # Errors
    /// [`ProtocolError`] when what stands next can never become a frame; the connection is of no
    /// use any more.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, ProtocolError> {
        let waiting = self.waiting();
        let Some(head) = waiting.first_chunk::<4>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*head) as usize;
        if length == 0 {
            return Err(ProtocolError::Empty);
        }
        if length > FRAME_BYTES_MAX {
            return Err(ProtocolError::TooLong(length as u64));
        }
        let Some(kind) = waiting.get(4) else {
            return Ok(None);
        };
        // Before the payload is there, so that nobody makes us wait for a frame of no kind.
        let kind = FrameKind::parse(*kind)?;
        let Some(payload) = waiting.get(HEAD_BYTES..4 + length) else {
            return Ok(None);
        };
        let payload = payload.to_vec();
        self.take(4 + length);
        Ok(Some(Frame { kind, payload }))
    }

    /// Whether part of a frame is waiting for its rest.
    pub fn is_empty(&self) -> bool {
        self.waiting().is_empty()
    }

    fn waiting(&self) -> &[u8] {
        &self.buffer[self.taken..]
    }

    /// Passes the first bytes by and leaves no copy of them behind: they may be a credential.
    fn take(&mut self, count: usize) {
        let gone = &mut self.buffer[self.taken..self.taken + count];
        gone.fill(0);
        std::hint::black_box(gone);
        self.taken += count;
        if self.taken == self.buffer.len() {
            // An idle connection holds no memory.
            self.buffer = Vec::new();
            self.taken = 0;
        }
    }
}
