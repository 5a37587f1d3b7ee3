//! Tells a compressed archive by its first bytes and opens it.

use super::error::UnpackError;
use super::zstd::Zstd;
use flate2::read::MultiGzDecoder;
use std::io::{self, Chain, Cursor, Read};

/// Longest magic looked for.
const MAGIC_BYTES: usize = 6;

type Whole<R> = Chain<Cursor<Vec<u8>>, R>;

/// An archive's plain bytes.
#[derive(Debug)]
pub(super) enum Plain<R> {
    Tar(Whole<R>),
    Gzip(Box<MultiGzDecoder<Whole<R>>>),
    Zstd(Box<Zstd<Whole<R>>>),
}

impl<R: Read> Read for Plain<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tar(whole) => whole.read(buffer),
            Self::Gzip(decoder) => decoder.read(buffer),
            Self::Zstd(decoder) => decoder.read(buffer),
        }
    }
}

pub(super) fn open<R: Read>(mut archive: R) -> Result<Plain<R>, UnpackError> {
    let mut magic = Vec::with_capacity(MAGIC_BYTES);
    archive
        .by_ref()
        .take(MAGIC_BYTES as u64)
        .read_to_end(&mut magic)
        .map_err(UnpackError::Read)?;
    let with = match magic.as_slice() {
        [0xfd, b'7', b'z', b'X', b'Z', 0] => Some("xz"),
        [b'B', b'Z', b'h', ..] => Some("bzip2"),
        _ => None,
    };
    if let Some(with) = with {
        return Err(UnpackError::Compression { with });
    }
    let gzip = magic.starts_with(&[0x1f, 0x8b]);
    // A frame to be skipped may come first (RFC 8878, 3.1.2), as in archives made to be sought in.
    let zstd = matches!(
        magic.as_slice(),
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]
    );
    let whole = Cursor::new(magic).chain(archive);
    Ok(if gzip {
        Plain::Gzip(Box::new(MultiGzDecoder::new(whole)))
    } else if zstd {
        Plain::Zstd(Box::new(Zstd::new(whole)))
    } else {
        Plain::Tar(whole)
    })
}
