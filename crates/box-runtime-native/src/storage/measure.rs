//! How much space a tree takes.

use super::walk::{Entry, Visit, walk};
use rustix::fd::BorrowedFd;
use rustix::fs::Stat;
use std::collections::HashSet;
use std::io;

/// Bytes of one unit of `st_blocks` (inode(7)).
const BLOCK_BYTES: u64 = 512;
/// What an empty file or a folder counts at least, so that a limit on bytes bounds their number too.
const FILE_BYTES_MIN: u64 = 4096;
/// Files with several names that are told apart; more are counted once a name.
const LINKED_MAX: usize = 1 << 20;

/// What one file counts.
pub(crate) fn space_of(stat: &Stat) -> u64 {
    let blocks = u64::try_from(stat.st_blocks).unwrap_or(0);
    (blocks * BLOCK_BYTES).max(FILE_BYTES_MIN)
}

/// Space of all that is in an open folder, each file once, shared content in full.
///
/// # Errors
/// Those of [`walk`]: a box may move folders about so that they cannot be counted while it runs.
pub(crate) fn measure(folder: BorrowedFd<'_>) -> io::Result<u64> {
    let mut sum = Sum::default();
    walk(folder, &mut sum)?;
    Ok(sum.bytes)
}

#[derive(Default)]
struct Sum {
    bytes: u64,
    linked: HashSet<(u64, u64)>,
}

impl Visit for Sum {
    fn enter(&mut self, entry: &Entry<'_>, _opened: BorrowedFd<'_>) -> io::Result<()> {
        self.bytes += space_of(entry.stat);
        Ok(())
    }

    fn file(&mut self, entry: &Entry<'_>) -> io::Result<()> {
        let first = entry.stat.st_nlink < 2
            || self.linked.len() >= LINKED_MAX
            || self.linked.insert((entry.stat.st_dev, entry.stat.st_ino));
        if first {
            self.bytes += space_of(entry.stat);
        }
        Ok(())
    }

    fn leave(&mut self, _opened: BorrowedFd<'_>, _stat: &Stat) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::walk::FOLDER;
    use super::*;
    use rustix::fd::AsFd as _;
    use rustix::fs::Mode;

    #[test]
    fn names_of_one_file_count_once_and_holes_not_at_all() {
        let place = tempfile::tempdir().unwrap();
        let measured = || {
            let folder = rustix::fs::open(place.path(), FOLDER, Mode::empty()).unwrap();
            measure(folder.as_fd()).unwrap()
        };
        assert_eq!(measured(), 0);
        std::fs::write(place.path().join("a"), vec![1; 1 << 20]).unwrap();
        let one = measured();
        assert!(((1 << 20)..(1 << 20) + 8192).contains(&one), "{one}");
        std::fs::hard_link(place.path().join("a"), place.path().join("b")).unwrap();
        let holes = std::fs::File::create(place.path().join("holes")).unwrap();
        holes.set_len(1 << 30).unwrap();
        assert_eq!(measured(), one + FILE_BYTES_MIN);
    }
}
