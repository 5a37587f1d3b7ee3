//! Replaces secrets in what a host says over a WebSocket (RFC 6455 §5.2), whatever frames they are
//! spread over. What takes their place is as long, so that frames stay as they are.
//!
//! No extension is agreed on where this stands: a compressed frame, or one that is masked as a
//! client's, is none of a host's and ends the connection.

use super::{Needle, beginning_at_end, filled};
use crate::intercept::grant::Grant;
use memchr::memmem;
use std::ops::Range;

const FIN: u8 = 0x80;
const RESERVED: u8 = 0x70;
const OPCODE: u8 = 0x0f;
/// Opcodes from here on are of control frames, which stand between the frames of a message.
const FIRST_CONTROL: u8 = 8;
const MASK: u8 = 0x80;
/// What a control frame holds at most.
const CONTROL_BYTES_MAX: u64 = 125;

/// A host sent what is no frame of a host's.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoFrame;

/// The frames of one host.
pub(crate) struct FrameScrub {
    needles: Vec<Needle>,
    tell: Option<Box<dyn Fn() + Send + Sync>>,
    /// Bytes that did not pass yet.
    held: Vec<u8>,
    /// Where in them the message stands.
    message: Vec<Range<usize>>,
    at: At,
}

/// Longest that waits for what follows: a beginning of a secret with control frames behind it.
const HELD_BYTES_MAX: usize = 64 << 10;

/// Where in a frame.
#[derive(Clone, Copy)]
enum At {
    Head { begins: usize },
    Payload { left: u64, of: Of },
}

/// What a payload belongs to.
#[derive(Clone, Copy)]
enum Of {
    /// A message, and whether it is its last frame.
    Message { is_last: bool },
    /// A control frame, which begins there in what is held.
    Control { begins: usize },
}

/// Whether more of a message can follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Message {
    GoesOn,
    IsWhole,
}

impl FrameScrub {
    /// Absent when there is nothing to look for.
    pub(crate) fn new(grants: &[Grant], tell: Box<dyn Fn() + Send + Sync>) -> Option<Self> {
        let mut needles = super::needles(grants);
        for needle in &mut needles {
            needle.placeholder = filled(needle.placeholder.as_bytes(), needle.secret.bytes().len());
        }
        (!needles.is_empty()).then_some(Self {
            needles,
            tell: Some(tell),
            held: Vec::new(),
            message: Vec::new(),
            at: At::Head { begins: 0 },
        })
    }

    /// Takes what came and gives what may pass.
    pub(crate) fn pass(&mut self, mut piece: &[u8]) -> Result<Vec<u8>, NoFrame> {
        let mut passed = Vec::with_capacity(piece.len());
        while !piece.is_empty() {
            piece = match self.at {
                At::Head { begins } => self.read_head(begins, piece)?,
                At::Payload { left, of } => self.read_payload(left, of, piece),
            };
            if let At::Payload { left: 0, of } = self.at {
                self.end_frame(of, &mut passed);
            }
        }
        self.let_go(Message::GoesOn, &mut passed);
        if self.held.len() > HELD_BYTES_MAX {
            return Err(NoFrame);
        }
        Ok(passed)
    }

    /// What was held back, once nothing follows.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        if let At::Payload {
            of: Of::Control { begins },
            ..
        } = self.at
        {
            let ends = self.held.len();
            self.replace(std::slice::from_ref(&(begins..ends)));
        }
        std::mem::take(&mut self.held)
    }

    fn read_head<'p>(&mut self, begins: usize, piece: &'p [u8]) -> Result<&'p [u8], NoFrame> {
        let Some((byte, rest)) = piece.split_first() else {
            return Ok(piece);
        };
        self.held.push(*byte);
        let head = self.held.get(begins..).unwrap_or_default();
        let &[first, second, ref length @ ..] = head else {
            return if byte & RESERVED == 0 {
                Ok(rest)
            } else {
                Err(NoFrame)
            };
        };
        if second & MASK != 0 {
            return Err(NoFrame);
        }
        let wide = match second {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        if length.len() < wide {
            return Ok(rest);
        }
        let left = match wide {
            0 => u64::from(second),
            _ => length
                .iter()
                .fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
        };
        let of = if first & OPCODE < FIRST_CONTROL {
            Of::Message {
                is_last: first & FIN != 0,
            }
        } else if left <= CONTROL_BYTES_MAX {
            Of::Control {
                begins: self.held.len(),
            }
        } else {
            return Err(NoFrame);
        };
        self.at = At::Payload { left, of };
        Ok(rest)
    }

    fn read_payload<'p>(&mut self, left: u64, of: Of, piece: &'p [u8]) -> &'p [u8] {
        let bytes = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
        let (own, rest) = piece.split_at(bytes);
        let begins = self.held.len();
        self.held.extend_from_slice(own);
        if let Of::Message { .. } = of {
            self.message.push(begins..self.held.len());
        }
        self.at = At::Payload {
            left: left - bytes as u64,
            of,
        };
        rest
    }

    fn end_frame(&mut self, of: Of, passed: &mut Vec<u8>) {
        match of {
            Of::Message { is_last: true } => self.let_go(Message::IsWhole, passed),
            Of::Message { is_last: false } => self.let_go(Message::GoesOn, passed),
            // Short, and whole: looked at by itself.
            Of::Control { begins } => {
                let ends = self.held.len();
                self.replace(std::slice::from_ref(&(begins..ends)));
            }
        }
        self.at = At::Head {
            begins: self.held.len(),
        };
    }

    /// Lets go what cannot become a secret any more.
    fn let_go(&mut self, state: Message, passed: &mut Vec<u8>) {
        let is_whole = state == Message::IsWhole;
        let message = std::mem::take(&mut self.message);
        let text = self.replace(&message);
        let beginnings = self
            .needles
            .iter()
            .map(|needle| beginning_at_end(&text, needle.secret.bytes()));
        let kept = if is_whole {
            0
        } else {
            beginnings.max().unwrap_or_default()
        };
        let until = self.place_of(&message, text.len() - kept);
        // A head or a control frame that is not whole stays together.
        let until = match self.at {
            At::Head { begins } => until.min(begins),
            At::Payload {
                of: Of::Control { begins },
                ..
            } if !is_whole => until.min(begins),
            At::Payload { .. } => until,
        };
        passed.extend(self.held.drain(..until));
        let kept_of = |part: Range<usize>| {
            let part = part.start.max(until)..part.end.max(until);
            (!part.is_empty()).then(|| part.start - until..part.end - until)
        };
        if !is_whole {
            self.message = message.into_iter().filter_map(kept_of).collect();
        }
        match &mut self.at {
            At::Head { begins }
            | At::Payload {
                of: Of::Control { begins },
                ..
            } => *begins -= until.min(*begins),
            At::Payload { .. } => {}
        }
    }

    /// Where the byte of a message with this number stands; behind it all when there is none.
    fn place_of(&self, message: &[Range<usize>], mut number: usize) -> usize {
        for part in message {
            if number < part.len() {
                return part.start + number;
            }
            number -= part.len();
        }
        self.held.len()
    }

    /// Replaces the secrets in these parts of what is held. Gives their text as it is then.
    fn replace(&mut self, parts: &[Range<usize>]) -> Vec<u8> {
        let of_parts = parts.iter().filter_map(|part| self.held.get(part.clone()));
        let mut text = of_parts.collect::<Vec<_>>().concat();
        let mut is_found = false;
        for needle in &self.needles {
            is_found |= overwrite(&mut text, needle);
        }
        if is_found {
            self.put_back(parts, &text);
        }
        if let Some(tell) = self.tell.take_if(|_| is_found) {
            tell();
        }
        text
    }

    /// Puts the text of these parts back where it was.
    fn put_back(&mut self, parts: &[Range<usize>], text: &[u8]) {
        let mut clean = text;
        for part in parts {
            let Some((own, rest)) = clean.split_at_checked(part.len()) else {
                return;
            };
            if let Some(there) = self.held.get_mut(part.clone()) {
                there.copy_from_slice(own);
            }
            clean = rest;
        }
    }
}

/// Writes over a secret wherever it stands; says whether it did.
fn overwrite(text: &mut [u8], needle: &Needle) -> bool {
    let secret = needle.secret.bytes();
    let places: Vec<usize> = memmem::find_iter(text, secret).collect();
    for place in &places {
        if let Some(there) = text.get_mut(*place..place + secret.len()) {
            there.copy_from_slice(needle.placeholder.as_bytes());
        }
    }
    !places.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intercept::grant::Credential;
    use crate::secret::Secret;
    use box_api::egress::{Carriage, CredentialSpec};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    const SECRET: &str = "sk-ant-oat01-S3CRET-token";
    const PLACEHOLDER: &str = "sk-ant-oat01-PLACEHOLDER-of-another-length";

    fn scrub() -> (FrameScrub, Arc<AtomicU32>) {
        let spec = CredentialSpec {
            id: "c".into(),
            kind: "claude".into(),
            hosts: Vec::new(),
            carried: vec![Carriage::Bearer],
        };
        let credential = Credential {
            spec,
            secret: Some(Secret::new(SECRET.as_bytes())),
        };
        let grant = Grant {
            placeholder: PLACEHOLDER.into(),
            credential: Some(Arc::new(credential)),
        };
        let told = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&told);
        let tell = Box::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
        });
        (FrameScrub::new(&[grant], tell).unwrap(), told)
    }

    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let head = match payload.len() {
            short @ 0..126 => vec![first, u8::try_from(short).unwrap()],
            long => {
                let [high, low] = u16::try_from(long).unwrap().to_be_bytes();
                vec![first, 126, high, low]
            }
        };
        [head.as_slice(), payload].concat()
    }

    fn passed(bytes: &[u8], size: usize) -> (Vec<u8>, u32) {
        let (mut scrub, told) = scrub();
        let mut all = Vec::new();
        for piece in bytes.chunks(size) {
            all.extend(scrub.pass(piece).unwrap());
        }
        all.extend(scrub.finish());
        (all, told.load(Ordering::Relaxed))
    }

    #[test]
    fn a_secret_in_frames_is_replaced_and_frames_stay_as_they_are() {
        let long = format!("{}{SECRET}{}", "x".repeat(300), "y".repeat(70));
        let all = [
            frame(0x81, SECRET.as_bytes()),
            frame(0x82, long.as_bytes()),
            // One message in three frames, with a ping in between.
            frame(0x01, &SECRET.as_bytes()[..9]),
            frame(0x89, b"ping"),
            frame(0x00, &SECRET.as_bytes()[9..20]),
            frame(0x80, &SECRET.as_bytes()[20..]),
            frame(0x8a, SECRET.as_bytes()),
            frame(0x81, b"sk-ant"),
            frame(0x88, b"\x03\xe8"),
        ]
        .concat();
        for size in [1, 2, 3, 10, 64, 5000] {
            let (got, told) = passed(&all, size);
            assert_eq!(got.len(), all.len(), "by {size}");
            let text = String::from_utf8_lossy(&got).into_owned();
            assert!(!text.contains("S3CRET"), "by {size}: {text}");
            for part in ["S3CR", "3CRET"] {
                assert!(!text.contains(part), "by {size}: {text}");
            }
            assert_eq!(told, 1);
            // Heads, and what is no secret, are where they were.
            let mut at = 0;
            for kept in [
                frame(0x89, b"ping"),
                frame(0x81, b"sk-ant"),
                frame(0x88, b"\x03\xe8"),
            ] {
                let place = memmem::find(&got[at..], &kept);
                at += place.unwrap_or_else(|| panic!("by {size}: {kept:?}"));
            }
        }
    }

    #[test]
    fn what_holds_no_secret_passes_at_once_and_unchanged() {
        let all = [
            frame(0x81, b"hello"),
            frame(0x02, &[0xff; 400]),
            frame(0x80, b""),
        ]
        .concat();
        for size in [1, 7, 5000] {
            let (mut scrub, told) = scrub();
            let mut got = Vec::new();
            for piece in all.chunks(size) {
                got.extend(scrub.pass(piece).unwrap());
            }
            assert_eq!(got, all, "nothing is held back");
            assert_eq!(told.load(Ordering::Relaxed), 0);
        }
    }

    #[test]
    fn what_is_no_frame_of_a_host_ends_it() {
        for bytes in [
            b"\xc1\x05hello".as_slice(),
            b"\x81\x85\0\0\0\0hello",
            b"\x89\x7e\x01\x00",
        ] {
            assert_eq!(scrub().0.pass(bytes), Err(NoFrame), "{bytes:?}");
        }
    }
}
