//! `ClientHello`s: a name is only found where another reader finds that name and no other.

use super::{Target, corpus, runtime};
use crate::tunnel::hello::peek;
use bytes::Bytes;

const WORDS: &[&[u8]] = &[
    b"\x16\x03\x01",
    b"\0\0",
    b"\x01",
    b"\0",
    b"\xff\xff",
    b"ok.test",
    b"evil.test",
    b".",
    b"\0\x0e\0\x0c\0\0\x09evil.test",
    b"\xfe\x0d",
    b"\x16\x03\x03\0\x01\x01",
];

/// Takes bytes off the front.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(first)
    }

    fn number(&mut self, bytes: usize) -> Option<usize> {
        let digits = self.take(bytes)?;
        Some(
            digits
                .iter()
                .fold(0, |sum, byte| sum << 8 | usize::from(*byte)),
        )
    }

    /// What a length of so many bytes announces.
    fn vector(&mut self, length_bytes: usize) -> Option<&'a [u8]> {
        let bytes = self.number(length_bytes)?;
        self.take(bytes)
    }
}

/// Every host name in every SNI extension of the first message, read leniently.
fn names_in(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (mut records, mut message) = (Reader(text), Vec::new());
    while let Some([22]) = records.take(1) {
        // What follows the message may be the beginning of another record.
        let (Some(_), Some(piece)) = (records.take(2), records.vector(2)) else {
            break;
        };
        message.extend_from_slice(piece);
    }
    let mut message = Reader(&message);
    let [1] = message.take(1)? else { return None };
    let mut hello = Reader(message.vector(3)?);
    hello.take(34)?;
    hello.vector(1)?;
    hello.vector(2)?;
    hello.vector(1)?;
    let (mut extensions, mut names) = (Reader(hello.vector(2)?), Vec::new());
    while let Some(kind) = extensions.number(2) {
        let data = extensions.vector(2)?;
        if kind != 0 {
            continue;
        }
        let mut list = Reader(Reader(data).vector(2)?);
        while let Some(kind) = list.take(1) {
            let name = list.vector(2)?;
            names.extend((kind == [0]).then(|| name.to_ascii_lowercase()));
        }
    }
    Some(names)
}

#[test]
fn name_that_is_found_is_the_only_one() {
    let runtime = runtime();
    let target = Target {
        seeds: corpus("hellos"),
        words: WORDS,
    };
    let mut found = 0;
    target.run(|input, _| {
        let mut stream = input;
        let Ok(hello) = runtime.block_on(peek(&mut stream, Bytes::new())) else {
            return;
        };
        let shown = input.escape_ascii();
        assert_eq!(hello.bytes, input[..hello.bytes.len()], "{shown}");
        let mut names = names_in(&hello.bytes).unwrap_or_else(|| panic!("only we read {shown}"));
        for name in &mut names {
            if name.last() == Some(&b'.') {
                name.pop();
            }
        }
        assert_eq!(names, [hello.name.as_bytes()], "{shown}");
        found += 1;
    });
    assert!(found > 0, "no name was found");
}
