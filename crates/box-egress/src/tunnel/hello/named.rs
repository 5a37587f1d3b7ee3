//! Whether a `ClientHello` names one host and no other, read a second time and more strictly: a reader
//! behind us may see a name where rustls stops looking.

const RECORD_HEAD_BYTES: usize = 5;
const CLIENT_HELLO: u8 = 1;
/// `legacy_version` and `random` (RFC 8446 §4.1.2).
const VERSION_AND_RANDOM_BYTES: usize = 34;
const SERVER_NAME: usize = 0;
const HOST_NAME: u8 = 0;

/// Whether the one server name of these records is `name`, with nothing behind or beside it
/// (RFC 6066 §3). They hold a whole `ClientHello`.
pub(super) fn is_only(name: &str, records: &[u8]) -> bool {
    let message = message(records);
    // A dot at the end, which rustls takes off, does not belong there (RFC 6066 §3): a host behind us
    // could take it for another name.
    only_name(&message).is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()))
}

/// The first handshake message, out of the records it is cut into.
fn message(mut records: &[u8]) -> Vec<u8> {
    let mut joined = Vec::new();
    while let Some((head, rest)) = records.split_at_checked(RECORD_HEAD_BYTES) {
        let length = usize::from(u16::from_be_bytes([head[3], head[4]]));
        // The last may not be there as a whole; what matters of it is.
        let (piece, rest) = rest.split_at(length.min(rest.len()));
        joined.extend_from_slice(piece);
        records = rest;
    }
    joined
}

fn only_name(message: &[u8]) -> Option<&[u8]> {
    let mut message = Reader(message);
    let [CLIENT_HELLO] = message.take(1)? else {
        return None;
    };
    let mut hello = Reader(message.vector(3)?);
    hello.take(VERSION_AND_RANDOM_BYTES)?;
    hello.vector(1)?;
    hello.vector(2)?;
    hello.vector(1)?;
    let mut extensions = Reader(hello.vector(2)?);
    let mut found = None;
    while !extensions.0.is_empty() {
        let (kind, data) = (extensions.number(2)?, extensions.vector(2)?);
        if kind != SERVER_NAME {
            continue;
        }
        let mut data = Reader(data);
        let mut list = Reader(data.vector(2)?);
        let ([HOST_NAME], name) = (list.take(1)?, list.vector(2)?) else {
            return None;
        };
        let is_alone = data.0.is_empty() && list.0.is_empty() && found.is_none();
        found = Some(name).filter(|_| is_alone);
        found?;
    }
    found.filter(|_| hello.0.is_empty())
}

/// What is left to read.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self, bytes: usize) -> Option<usize> {
        let add = |sum: usize, byte: &u8| (sum << 8) | usize::from(*byte);
        Some(self.take(bytes)?.iter().fold(0, add))
    }

    /// As many bytes as a number of so many says.
    fn vector(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let length = self.number(bytes)?;
        self.take(length)
    }
}
