//! Bytes with offsets that are kept until somebody says they are safe elsewhere.

use box_api::guest::{Kept, SPOOL_BYTES_MAX};
use std::collections::VecDeque;

/// Below this, memory is not given back.
const SPARE_BYTES: usize = 64 << 10;

/// Output of one stream: offsets `start..end`, at most [`SPOOL_BYTES_MAX`] of them.
#[derive(Debug, Default)]
pub(crate) struct Spool {
    start: u64,
    bytes: VecDeque<u8>,
}

impl Spool {
    pub(crate) fn kept(&self) -> Kept {
        Kept {
            start: self.start,
            end: self.end(),
        }
    }

    pub(crate) fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// How much more fits.
    pub(crate) fn room(&self) -> usize {
        SPOOL_BYTES_MAX - self.bytes.len()
    }

    /// Adds at the end. The caller read no more than there was room for.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// Up to `count` bytes from `offset` on, in two halves; empty outside of what is kept.
    pub(crate) fn read(&self, offset: u64, count: usize) -> [&[u8]; 2] {
        let skip = offset
            .checked_sub(self.start)
            .and_then(|skip| usize::try_from(skip).ok());
        let Some(skip) = skip.filter(|skip| *skip <= self.bytes.len()) else {
            return [&[], &[]];
        };
        let (first, second) = self.bytes.as_slices();
        let from_first = first.get(skip..).unwrap_or_default();
        let from_second = second
            .get(skip.saturating_sub(first.len())..)
            .unwrap_or_default();
        let in_first = from_first.len().min(count);
        let in_second = from_second.len().min(count - in_first);
        [&from_first[..in_first], &from_second[..in_second]]
    }

    /// Frees everything before `offset`, which is at most the end.
    pub(crate) fn free(&mut self, offset: u64) {
        let Some(count) = offset.checked_sub(self.start) else {
            return;
        };
        let count = usize::try_from(count)
            .unwrap_or(usize::MAX)
            .min(self.bytes.len());
        self.bytes.drain(..count);
        self.start += count as u64;
        if self.bytes.is_empty() {
            self.bytes = VecDeque::new();
        } else if self.bytes.capacity() > SPARE_BYTES
            && self.bytes.len() < self.bytes.capacity() / 4
        {
            self.bytes.shrink_to(SPARE_BYTES);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{SPOOL_BYTES_MAX, Spool};

    fn all(spool: &Spool, offset: u64, count: usize) -> Vec<u8> {
        spool.read(offset, count).concat()
    }

    #[test]
    fn bytes_keep_their_offsets_through_every_wrap() {
        let mut spool = Spool::default();
        let byte = |offset: u64| u8::try_from(offset * 7 % 251).unwrap();
        for _ in 0..200 {
            let next: Vec<u8> = (spool.end()..spool.end() + 1000).map(byte).collect();
            spool.push(&next);
            let (start, end) = (spool.kept().start, spool.end());
            let wanted: Vec<u8> = (start..end).map(byte).collect();
            assert_eq!(all(&spool, start, usize::MAX), wanted);
            assert_eq!(all(&spool, start + 3, 10), wanted[3..13]);
            spool.free(start + 993);
        }
        assert_eq!(spool.kept().start, 200 * 993);
    }

    #[test]
    fn nothing_is_read_outside_of_what_is_kept() {
        let mut spool = Spool::default();
        spool.push(b"abc");
        spool.free(1);
        assert_eq!(all(&spool, 0, 10), b"");
        assert_eq!(all(&spool, 1, 10), b"bc");
        assert_eq!(all(&spool, 3, 10), b"");
        assert_eq!(all(&spool, 4, 10), b"");
    }

    #[test]
    fn freed_memory_is_given_back() {
        let mut spool = Spool::default();
        spool.push(&vec![1; SPOOL_BYTES_MAX]);
        assert_eq!(spool.room(), 0);
        spool.free(SPOOL_BYTES_MAX as u64 - 10);
        assert!(spool.bytes.capacity() < 1 << 20);
        spool.free(SPOOL_BYTES_MAX as u64);
        assert_eq!(spool.bytes.capacity(), 0);
        assert_eq!(spool.end(), SPOOL_BYTES_MAX as u64);
    }
}
