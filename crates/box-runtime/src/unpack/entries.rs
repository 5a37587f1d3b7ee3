//! Reads a tar entry by entry: old, ustar, GNU and pax (tar(5)). Holds no more than one header.

use super::Shape;
use super::error::UnpackError;
use super::name::NAME_BYTES_MAX;
use super::pax::Extended;
use std::io::Read;
use tar::Header;

const BLOCK_BYTES: usize = 512;
/// Longest extended header; a file's extended attributes may fill one.
const EXTENDED_BYTES_MAX: u64 = 1 << 20;

/// One entry, its long names resolved.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: Vec<u8>,
    pub(crate) kind: Kind,
    /// Target of a link.
    pub(crate) link: Vec<u8>,
    pub(crate) mode: u32,
    pub(crate) uid: u64,
    pub(crate) gid: u64,
    /// Seconds since 1970.
    pub(crate) mtime: i64,
    /// Bytes of content that follow.
    pub(crate) size: u64,
    /// Records of its extended header: attributes, marks of our own, the whole time.
    pub(crate) records: Vec<(Vec<u8>, Vec<u8>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Folder,
    Link,
    HardLink,
    Device,
    Fifo,
    Sparse,
    Other(u8),
}

/// The entries of an archive, in order.
#[derive(Debug)]
pub(crate) struct Entries<R> {
    source: R,
    /// Bytes read so far.
    at: u64,
    /// Content of the current entry not read yet, and the padding after it.
    left: u64,
    padding: u64,
    seen: u64,
    seen_max: u64,
    shape: Shape,
}

impl<R: Read> Entries<R> {
    pub(crate) fn new(source: R, seen_max: u64, shape: Shape) -> Self {
        Self {
            source,
            at: 0,
            left: 0,
            padding: 0,
            seen: 0,
            seen_max,
            shape,
        }
    }

    /// The next entry, or `None` at the end mark. What was not read of the one before is skipped.
    pub(crate) fn next(&mut self) -> Result<Option<Entry>, UnpackError> {
        let mut extended = Extended::default();
        loop {
            let Some(header) = self.header()? else {
                return Ok(None);
            };
            match header.as_old().linkflag[0] {
                b'L' => extended.path = Some(self.long_name()?),
                b'K' => extended.link = Some(self.long_name()?),
                b'x' => self.extended(&mut extended)?,
                b'g' => self.global()?,
                _ => return self.entry(&header, extended).map(Some),
            }
        }
    }

    /// Content of the current entry; 0 when there is no more.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, UnpackError> {
        let most = usize::try_from(self.left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        if most == 0 {
            return Ok(0);
        }
        let count = some(&mut self.source, &mut buffer[..most])?;
        if count == 0 {
            return Err(self.damaged("it ends inside an entry"));
        }
        self.at += count as u64;
        self.left -= count as u64;
        Ok(count)
    }

    /// Reads on to the end of the file, so that a checksum over it, gzip's own included, is checked.
    pub(crate) fn drain(&mut self, max: u64) -> Result<(), UnpackError> {
        let rest = std::io::copy(&mut (&mut self.source).take(max + 1), &mut std::io::sink())
            .map_err(UnpackError::Read)?;
        if rest > max {
            Err(self.damaged("much follows its end mark"))
        } else {
            Ok(())
        }
    }

    pub(crate) fn source(&self) -> &R {
        &self.source
    }

    fn entry(&self, header: &Header, extended: Extended) -> Result<Entry, UnpackError> {
        let old = header.as_old();
        let name = extended
            .path
            .unwrap_or_else(|| header.path_bytes().into_owned());
        let link = extended
            .link
            .or_else(|| header.link_name_bytes().map(std::borrow::Cow::into_owned))
            .unwrap_or_default();
        // A size that only the extended header knows is for files over 8 GiB.
        if extended.size.is_some_and(|size| size != self.left) && !extended.sparse {
            return Err(self.damaged("two sizes for one entry"));
        }
        let field = |bytes| number(bytes).ok_or_else(|| self.damaged("bad number in a header"));
        Ok(Entry {
            kind: if extended.sparse {
                Kind::Sparse
            } else {
                kind_of(old.linkflag[0], &name)
            },
            mode: u32::try_from(field(&old.mode)? & 0o7777).unwrap_or_default(),
            uid: extended.uid.map_or_else(|| field(&old.uid), Ok)?,
            gid: extended.gid.map_or_else(|| field(&old.gid), Ok)?,
            mtime: extended.mtime.map_or_else(
                || field(&old.mtime).map(|time| i64::try_from(time).unwrap_or(i64::MAX)),
                Ok,
            )?,
            size: self.left,
            records: extended.kept,
            name,
            link,
        })
    }

    fn header(&mut self) -> Result<Option<Header>, UnpackError> {
        self.skip()?;
        let mut header = Header::new_old();
        let read = self.block(header.as_mut_bytes())?;
        if read == 0 {
            // Who made a layer may leave the mark out; its digest tells whether it is whole.
            return match self.shape {
                Shape::Whole => Err(self.damaged("it ends without an end mark")),
                Shape::Layer => Ok(None),
            };
        } else if read < BLOCK_BYTES {
            return Err(self.damaged("it ends inside a header"));
        } else if header.as_bytes().iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        self.seen += 1;
        if self.seen > self.seen_max {
            return Err(UnpackError::TooManyEntries { max: self.seen_max });
        }
        if number(&header.as_old().cksum) != Some(sum(&header)) {
            return Err(self.damaged("a header with a wrong checksum"));
        }
        self.left =
            number(&header.as_old().size).ok_or_else(|| self.damaged("bad number in a header"))?;
        self.padding = self.left.wrapping_neg() % BLOCK_BYTES as u64;
        Ok(Some(header))
    }

    /// Fills a block as far as the file goes; says how far.
    fn block(&mut self, block: &mut [u8]) -> Result<usize, UnpackError> {
        let mut filled = 0;
        while filled < block.len() {
            match some(&mut self.source, &mut block[filled..])? {
                0 => break,
                count => filled += count,
            }
        }
        self.at += filled as u64;
        Ok(filled)
    }

    fn global(&mut self) -> Result<(), UnpackError> {
        let mut global = Extended::default();
        self.extended(&mut global)?;
        if global.decides() {
            return Err(self.damaged("a global header that changes entries"));
        }
        Ok(())
    }

    fn extended(&mut self, into: &mut Extended) -> Result<(), UnpackError> {
        let data = self.content(EXTENDED_BYTES_MAX)?;
        into.read(&data).map_err(|what| self.damaged(what))
    }

    fn long_name(&mut self) -> Result<Vec<u8>, UnpackError> {
        let mut name = self.content(NAME_BYTES_MAX as u64 + 1)?;
        let end = name
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(name.len());
        name.truncate(end);
        Ok(name)
    }

    fn content(&mut self, max: u64) -> Result<Vec<u8>, UnpackError> {
        if self.left > max {
            return Err(self.damaged("an extended header or long name over its limit"));
        }
        let mut data = vec![0; usize::try_from(self.left).unwrap_or_default()];
        let mut filled = 0;
        while filled < data.len() {
            filled += self.read(&mut data[filled..])?;
        }
        Ok(data)
    }

    /// Leaves what was not read of the current entry, so that the next header comes next.
    pub(crate) fn skip(&mut self) -> Result<(), UnpackError> {
        let rest = self.left.saturating_add(self.padding);
        let skipped = std::io::copy(&mut (&mut self.source).take(rest), &mut std::io::sink())
            .map_err(UnpackError::Read)?;
        self.at += skipped;
        if skipped < rest {
            return Err(self.damaged("it ends inside an entry"));
        }
        (self.left, self.padding) = (0, 0);
        Ok(())
    }

    fn damaged(&self, what: &'static str) -> UnpackError {
        UnpackError::Damaged { at: self.at, what }
    }
}

/// One read that got something, unless the file is at its end.
fn some(source: &mut impl Read, buffer: &mut [u8]) -> Result<usize, UnpackError> {
    loop {
        match source.read(buffer) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            read => return read.map_err(UnpackError::Read),
        }
    }
}

fn kind_of(flag: u8, name: &[u8]) -> Kind {
    match flag {
        // The oldest tars know folders only by the slash.
        b'0' | 0 if name.ends_with(b"/") => Kind::Folder,
        b'0' | b'7' | 0 => Kind::File,
        b'5' => Kind::Folder,
        b'2' => Kind::Link,
        b'1' => Kind::HardLink,
        b'3' | b'4' => Kind::Device,
        b'6' => Kind::Fifo,
        b'S' => Kind::Sparse,
        other => Kind::Other(other),
    }
}

/// A header's number: octal digits between blanks, or binary after a set first bit. Blank is 0, as
/// packers write it that leave the owner out.
fn number(field: &[u8]) -> Option<u64> {
    if let [first @ (0x80 | 0xff), rest @ ..] = field {
        if *first == 0xff {
            return Some(0); // negative: a time before 1970
        }
        let (high, low) = rest.split_at(rest.len().saturating_sub(8));
        if high.iter().any(|byte| *byte != 0) {
            return None;
        }
        return Some(
            low.iter()
                .fold(0, |value, byte| value << 8 | u64::from(*byte)),
        );
    }
    let blank = |byte: &u8| *byte == b' ' || *byte == 0;
    let start = field
        .iter()
        .position(|byte| !blank(byte))
        .unwrap_or(field.len());
    let digits = &field[start..];
    let end = digits.iter().position(blank).unwrap_or(digits.len());
    digits[..end]
        .iter()
        .try_fold(0_u64, |value, byte| match byte {
            b'0'..=b'7' => value.checked_mul(8)?.checked_add(u64::from(byte - b'0')),
            _ => None,
        })
}

/// The sum of a header's bytes with its checksum read as blanks.
fn sum(header: &Header) -> u64 {
    let all: u64 = header.as_bytes().iter().map(|byte| u64::from(*byte)).sum();
    let own: u64 = header
        .as_old()
        .cksum
        .iter()
        .map(|byte| u64::from(*byte))
        .sum();
    all - own + 8 * u64::from(b' ')
}
