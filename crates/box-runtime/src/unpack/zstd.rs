//! Reads zstd (RFC 8878): frames one after the other, those to be skipped among them.

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::{self, BufRead as _, BufReader, Read};

/// Most a frame may want to look back, bytes: it is held in memory. The same as zstd(1) allows
/// without `--long`.
const WINDOW_BYTES_MAX: u64 = 128 << 20;

/// The plain bytes of a compressed source.
pub(crate) struct Zstd<R> {
    source: BufReader<R>,
    decoder: FrameDecoder,
    /// Whether the decoder stands in a frame.
    inside: bool,
}

impl<R> std::fmt::Debug for Zstd<R> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Zstd").finish_non_exhaustive()
    }
}

impl<R: Read> Zstd<R> {
    pub(crate) fn new(source: R) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(WINDOW_BYTES_MAX);
        Self {
            source: BufReader::new(source),
            decoder,
            inside: false,
        }
    }

    /// Goes to the next frame that holds something; `false` at the end.
    fn next_frame(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.source) {
                Ok(()) => {
                    self.inside = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    self.skip(u64::from(length))?;
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(false)
    }

    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        let skipped = io::copy(&mut (&mut self.source).take(bytes), &mut io::sink())?;
        if skipped < bytes {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }

    /// Leaves a frame whose content was read, checking it where the frame says how.
    fn leave(&mut self) -> io::Result<()> {
        self.inside = false;
        let told = self.decoder.get_checksum_from_data();
        if told.is_some() && told != self.decoder.get_calculated_checksum() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a zstd frame with a wrong checksum",
            ));
        }
        Ok(())
    }
}

impl<R: Read> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.inside && !self.next_frame()? {
                return Ok(0);
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder
                    .decode_blocks(&mut self.source, one)
                    .map_err(io::Error::other)?;
            }
            match self.decoder.read(buffer)? {
                0 => self.leave()?,
                count => return Ok(count),
            }
        }
    }
}
