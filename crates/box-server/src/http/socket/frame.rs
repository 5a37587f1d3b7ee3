//! Frames of RFC 6455, as the side that takes connections reads and writes them.

use box_api::page::INBOUND_BYTES_MAX;
use tokio::io::{AsyncRead, AsyncReadExt as _};

const READ_BYTES: usize = 16 << 10;
/// Longest body of a control frame (§5.5).
const CONTROL_BYTES_MAX: usize = 125;
const FIN: u8 = 0x80;
const RESERVED: u8 = 0x70;
const MASKED: u8 = 0x80;
const CONTINUATION: u8 = 0x0;
const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xA;

/// Something a page sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Incoming {
    Text(String),
    Binary(Vec<u8>),
    Ping(Vec<u8>),
    Pong,
    Close,
}

/// Why nothing more is read.
#[derive(Debug, thiserror::Error)]
pub(super) enum WireError {
    #[error("the connection broke")]
    Io(#[from] std::io::Error),
    #[error("the page is gone")]
    Gone,
    #[error("a frame breaks the protocol: {0}")]
    Protocol(&'static str),
    #[error("a frame is too long")]
    TooLong,
    #[error("a text is not UTF-8")]
    NotText,
    #[error("a frame is not text")]
    Binary,
}

impl WireError {
    /// The code a close frame gives for it (§7.4.1).
    pub(super) fn code(&self) -> u16 {
        match self {
            Self::Io(_) | Self::Gone => 1001,
            Self::Protocol(_) => 1002,
            Self::Binary => 1003,
            Self::NotText => 1007,
            Self::TooLong => 1009,
        }
    }
}

/// What comes from a page.
#[derive(Debug)]
pub(super) struct Reader<R> {
    stream: R,
    inbox: Vec<u8>,
    /// The pieces so far of a message in several frames, and whether it is a text.
    begun: Option<(u8, Vec<u8>)>,
    takes: Takes,
}

/// Which messages are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    Texts,
    TextsAndBytes,
}

/// A frame as it was sent.
#[derive(Debug, PartialEq, Eq)]
struct Frame {
    is_last: bool,
    opcode: u8,
    body: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    pub(super) fn new(stream: R, takes: Takes) -> Self {
        Self {
            stream,
            inbox: Vec::new(),
            begun: None,
            takes,
        }
    }

    /// The next message or control frame. May be cancelled: nothing is lost.
    pub(super) async fn next(&mut self) -> Result<Incoming, WireError> {
        loop {
            if let Some(incoming) = self.buffered()? {
                return Ok(incoming);
            }
            self.inbox.reserve(READ_BYTES);
            if self.stream.read_buf(&mut self.inbox).await? == 0 {
                return Err(WireError::Gone);
            }
        }
    }

    fn buffered(&mut self) -> Result<Option<Incoming>, WireError> {
        while let Some(frame) = take(&mut self.inbox)? {
            if let Some(incoming) = self.put_together(frame)? {
                return Ok(Some(incoming));
            }
        }
        Ok(None)
    }

    fn put_together(&mut self, frame: Frame) -> Result<Option<Incoming>, WireError> {
        match frame.opcode {
            PING => Ok(Some(Incoming::Ping(frame.body))),
            PONG => Ok(Some(Incoming::Pong)),
            CLOSE => Ok(Some(Incoming::Close)),
            BINARY if self.takes == Takes::Texts => Err(WireError::Binary),
            TEXT | BINARY if self.begun.is_some() => {
                Err(WireError::Protocol("a text begins within another"))
            }
            kind @ (TEXT | BINARY) => self.add((kind, Vec::new()), frame),
            CONTINUATION => match self.begun.take() {
                Some(begun) => self.add(begun, frame),
                None => Err(WireError::Protocol("it goes on with nothing")),
            },
            _ => Err(WireError::Protocol("its kind is unknown")),
        }
    }

    fn add(
        &mut self,
        (kind, mut begun): (u8, Vec<u8>),
        frame: Frame,
    ) -> Result<Option<Incoming>, WireError> {
        if begun.len() + frame.body.len() > INBOUND_BYTES_MAX {
            return Err(WireError::TooLong);
        }
        begun.extend(frame.body);
        if !frame.is_last {
            self.begun = Some((kind, begun));
            return Ok(None);
        }
        if kind == BINARY {
            return Ok(Some(Incoming::Binary(begun)));
        }
        let text = String::from_utf8(begun).map_err(|_| WireError::NotText)?;
        Ok(Some(Incoming::Text(text)))
    }
}

/// The first frame of `inbox`, if all of it is there.
fn take(inbox: &mut Vec<u8>) -> Result<Option<Frame>, WireError> {
    let [first, second, rest @ ..] = inbox.as_slice() else {
        return Ok(None);
    };
    let (opcode, is_last) = (first & 0x0F, first & FIN != 0);
    if first & RESERVED != 0 {
        return Err(WireError::Protocol("a reserved bit is set"));
    }
    if second & MASKED == 0 {
        return Err(WireError::Protocol("it is not masked"));
    }
    let (bytes, rest) = match second & !MASKED {
        126 => match rest.split_first_chunk::<2>() {
            Some((length, rest)) => (u64::from(u16::from_be_bytes(*length)), rest),
            None => return Ok(None),
        },
        127 => match rest.split_first_chunk::<8>() {
            Some((length, rest)) => (u64::from_be_bytes(*length), rest),
            None => return Ok(None),
        },
        short => (u64::from(short), rest),
    };
    let bytes = usize::try_from(bytes).map_err(|_| WireError::TooLong)?;
    if bytes > INBOUND_BYTES_MAX {
        return Err(WireError::TooLong);
    }
    if opcode >= CLOSE && (bytes > CONTROL_BYTES_MAX || !is_last) {
        return Err(WireError::Protocol("a control frame is long or in pieces"));
    }
    let Some((mask, rest)) = rest.split_first_chunk::<4>() else {
        return Ok(None);
    };
    let Some(masked) = rest.get(..bytes) else {
        return Ok(None);
    };
    let body = masked
        .iter()
        .zip(mask.iter().cycle())
        .map(|(byte, mask)| byte ^ mask)
        .collect();
    let taken = inbox.len() - (rest.len() - bytes);
    inbox.drain(..taken);
    Ok(Some(Frame {
        is_last,
        opcode,
        body,
    }))
}

/// A text in one frame.
pub(super) fn text(body: &str) -> Vec<u8> {
    framed(TEXT, body.as_bytes())
}

pub(super) fn binary(body: &[u8]) -> Vec<u8> {
    framed(BINARY, body)
}

pub(super) fn ping() -> Vec<u8> {
    framed(PING, &[])
}

pub(super) fn pong(body: &[u8]) -> Vec<u8> {
    framed(PONG, body)
}

pub(super) fn close(code: u16) -> Vec<u8> {
    framed(CLOSE, &code.to_be_bytes())
}

fn framed(opcode: u8, body: &[u8]) -> Vec<u8> {
    const HEAD_BYTES_MAX: usize = 10;
    let mut frame = Vec::with_capacity(HEAD_BYTES_MAX + body.len());
    frame.push(FIN | opcode);
    match (u8::try_from(body.len()), u16::try_from(body.len())) {
        (Ok(short), _) if short < 126 => frame.push(short),
        (_, Ok(length)) => {
            frame.push(126);
            frame.extend(length.to_be_bytes());
        }
        (_, Err(_)) => {
            frame.push(127);
            frame.extend((body.len() as u64).to_be_bytes());
        }
    }
    frame.extend(body);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a page sends it.
    fn sent(first: u8, body: &[u8]) -> Vec<u8> {
        let mask = [1, 2, 3, 250];
        let mut frame = framed(0, body);
        frame[0] = first;
        frame[1] |= MASKED;
        let head = frame.len() - body.len();
        frame.truncate(head);
        frame.extend(mask);
        frame.extend(
            body.iter()
                .zip(mask.iter().cycle())
                .map(|(byte, mask)| byte ^ mask),
        );
        frame
    }

    async fn read(bytes: &[u8]) -> Result<Vec<Incoming>, WireError> {
        let mut reader = Reader::new(bytes, Takes::Texts);
        let mut all = Vec::new();
        loop {
            match reader.next().await {
                Ok(incoming) => all.push(incoming),
                Err(WireError::Gone) => return Ok(all),
                Err(error) => return Err(error),
            }
        }
    }

    #[tokio::test]
    async fn messages_in_pieces_are_put_together_around_pings() {
        let long = "ä".repeat(40_000);
        let mut bytes = sent(TEXT, "hel".as_bytes());
        bytes.extend(sent(FIN | PING, b"now"));
        bytes.extend(sent(FIN, "lo".as_bytes()));
        bytes.extend(sent(FIN | TEXT, long.as_bytes()));
        bytes.extend(sent(FIN | CLOSE, &[]));
        let all = read(&bytes).await.unwrap();
        let expected = [
            Incoming::Ping(b"now".to_vec()),
            Incoming::Text("hello".into()),
            Incoming::Text(long),
            Incoming::Close,
        ];
        assert_eq!(all, expected);
    }

    #[tokio::test]
    async fn what_breaks_the_protocol_is_not_read() {
        let mut unmasked = framed(TEXT, b"hi");
        assert!(matches!(read(&unmasked).await, Err(WireError::Protocol(_))));
        unmasked[0] |= 0x40;
        let code = |bytes: Vec<u8>| async move { read(&bytes).await.unwrap_err().code() };
        assert_eq!(code(sent(FIN | 0x40 | TEXT, b"hi")).await, 1002);
        assert_eq!(code(sent(FIN, b"hi")).await, 1002);
        assert_eq!(code(sent(PING, b"hi")).await, 1002);
        assert_eq!(code(sent(FIN | PING, &[0; 126])).await, 1002);
        assert_eq!(code(sent(FIN | 0x3, b"hi")).await, 1002);
        assert_eq!(code(sent(FIN | BINARY, b"hi")).await, 1003);
        assert_eq!(code(sent(FIN | TEXT, &[0xFF])).await, 1007);
        let mut huge = vec![FIN | TEXT, MASKED | 127];
        huge.extend(u64::MAX.to_be_bytes());
        assert_eq!(code(huge).await, 1009);
    }
}
