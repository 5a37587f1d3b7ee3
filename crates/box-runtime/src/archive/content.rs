//! Content of files: runs of zeros become holes, whatever they were before.

use super::budget::Budget;
use super::error::ArchiveError;
use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};

/// How much is read, checked and written at once.
pub(super) const CHUNK_BYTES: usize = 256 << 10;
/// A file system's block nearly everywhere.
const BLOCK_BYTES: usize = 4096;

/// A file being filled from its start.
#[derive(Debug)]
pub(super) struct Filling {
    file: File,
    /// Bytes so far, holes included.
    bytes: u64,
    /// Whether the file ends in a hole that is not there yet.
    hole: bool,
}

impl Filling {
    pub(super) fn new(file: File) -> Self {
        Self {
            file,
            bytes: 0,
            hole: false,
        }
    }

    /// Adds a chunk. Counts what takes room on disk.
    pub(super) fn add(&mut self, chunk: &[u8], budget: &mut Budget) -> Result<(), Failure> {
        let mut rest = chunk;
        while !rest.is_empty() {
            let zeros = zeros(rest);
            if zeros > 0 {
                let step = i64::try_from(zeros).unwrap_or(i64::MAX);
                self.file.seek(SeekFrom::Current(step))?;
                budget.seem(zeros as u64)?;
            } else {
                let data = data(rest);
                budget.store(data as u64)?;
                self.file.write_all(&rest[..data])?;
                rest = &rest[data..];
                self.bytes += data as u64;
                self.hole = false;
                continue;
            }
            rest = &rest[zeros..];
            self.bytes += zeros as u64;
            self.hole = true;
        }
        Ok(())
    }

    pub(super) fn finish(self) -> io::Result<File> {
        if self.hole {
            self.file.set_len(self.bytes)?;
        }
        Ok(self.file)
    }
}

/// Why a chunk was not added.
#[derive(Debug)]
pub(super) enum Failure {
    Io(io::Error),
    Budget(ArchiveError),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Self {
        Self::Budget(error)
    }
}

impl Failure {
    pub(super) fn of(self, entry: &[u8]) -> ArchiveError {
        match self {
            Self::Io(error) => ArchiveError::entry("write", entry, error),
            Self::Budget(error) => error,
        }
    }
}

/// How many bytes at the start are zero, in whole blocks.
fn zeros(bytes: &[u8]) -> usize {
    let blocks = bytes.chunks_exact(BLOCK_BYTES);
    blocks.take_while(|block| is_zero(block)).count() * BLOCK_BYTES
}

/// How many bytes come before the next block of zeros.
fn data(bytes: &[u8]) -> usize {
    let blocks = bytes.chunks(BLOCK_BYTES);
    let whole = |block: &&[u8]| block.len() < BLOCK_BYTES || !is_zero(block);
    let bytes: usize = blocks.take_while(whole).map(<[u8]>::len).sum();
    bytes
}

fn is_zero(block: &[u8]) -> bool {
    // Compared with itself one byte on: the comparison of slices is the fastest there is.
    block[0] == 0 && block[..block.len() - 1] == block[1..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn zeros_take_no_room_and_are_there_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut content = vec![0; 1 << 20];
        content[5000] = 1;
        content[700_001] = 2;
        for (tail, chunk) in [(0, CHUNK_BYTES), (17, 4096), (1, 100_000)] {
            content.extend(vec![0; tail]);
            let mut filling = Filling::new(File::create(&path).unwrap());
            let mut budget = Budget::unbounded();
            for piece in content.chunks(chunk) {
                filling.add(piece, &mut budget).unwrap();
            }
            drop(filling.finish().unwrap());
            assert!(std::fs::read(&path).unwrap() == content);
            assert!(budget.stored() <= 64 << 10, "{} bytes", budget.stored());
            let blocks = std::fs::metadata(&path).unwrap().blocks();
            assert!(blocks * 512 < 200 << 10, "{blocks} blocks");
        }
    }
}
