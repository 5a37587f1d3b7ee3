//! The bytes of a file, shared where the file system can, else copied with their holes.

use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{SeekFrom, copy_file_range, ftruncate, ioctl_ficlone, seek};
use rustix::io::{Errno, retry_on_intr};
use std::io;

/// How much one system call copies at most, so that progress is told in time.
const CHUNK_BYTES_MAX: u64 = 16 << 20;
const BUFFER_BYTES: usize = 128 << 10;

/// Whether content may be shared between files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// FICLONE of `ioctl_ficlone(2)`; a file for which it fails is copied.
    WherePossible,
    Never,
}

/// Makes the empty file `to` hold what the first `size` bytes of `from` hold. `copied` is told of
/// bytes as they are written; shared ones are none.
///
/// # Errors
/// What the kernel says; a full disk is `ENOSPC` or `EDQUOT`.
pub(crate) fn copy(
    from: impl AsFd,
    to: impl AsFd,
    size: u64,
    sharing: Sharing,
    copied: &mut dyn FnMut(u64),
) -> io::Result<()> {
    let (from, to) = (from.as_fd(), to.as_fd());
    if size == 0 {
        return Ok(());
    }
    if sharing == Sharing::WherePossible && ioctl_ficlone(to, from).is_ok() {
        return Ok(());
    }
    let mut at = 0;
    while at < size {
        let Some((start, end)) = next_data(from, at, size)? else {
            break;
        };
        copy_range(from, to, start..end, copied)?;
        at = end;
    }
    // A hole at the end has no byte that was written.
    ftruncate(to, size)?;
    Ok(())
}

/// The next bytes that are no hole.
fn next_data(file: BorrowedFd<'_>, at: u64, size: u64) -> io::Result<Option<(u64, u64)>> {
    let start = match seek(file, SeekFrom::Data(at)) {
        Err(Errno::NXIO) => return Ok(None),
        // A file system without holes.
        Err(Errno::INVAL) => return Ok(Some((at, size))),
        start => start?,
    };
    if start >= size {
        return Ok(None);
    }
    let end = match seek(file, SeekFrom::Hole(start)) {
        // Cut shorter meanwhile.
        Err(Errno::NXIO) => return Ok(None),
        end => end?,
    };
    Ok(Some((start, end.min(size))))
}

fn copy_range(
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    range: std::ops::Range<u64>,
    copied: &mut dyn FnMut(u64),
) -> io::Result<()> {
    let (mut read_at, mut write_at) = (range.start, range.start);
    while read_at < range.end {
        let want = (range.end - read_at).min(CHUNK_BYTES_MAX);
        let want = usize::try_from(want).unwrap_or(BUFFER_BYTES);
        let step = copy_file_range(from, Some(&mut read_at), to, Some(&mut write_at), want);
        match step {
            // The file was cut shorter meanwhile.
            Ok(0) => return Ok(()),
            Ok(count) => copied(count as u64),
            Err(Errno::INTR) => {}
            Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                return by_hand(from, to, read_at..range.end, copied);
            }
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

fn by_hand(
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    range: std::ops::Range<u64>,
    copied: &mut dyn FnMut(u64),
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut at = range.start;
    while at < range.end {
        let want = usize::try_from(range.end - at).map_or(BUFFER_BYTES, |n| n.min(BUFFER_BYTES));
        let count = retry_on_intr(|| rustix::io::pread(from, &mut buffer[..want], at))?;
        if count == 0 {
            return Ok(());
        }
        let mut written = 0;
        while written < count {
            let place = at + written as u64;
            written += retry_on_intr(|| rustix::io::pwrite(to, &buffer[written..count], place))?;
        }
        at += count as u64;
        copied(count as u64);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn holes_stay_holes_and_bytes_are_bytes() {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        let file = std::fs::File::create(&from).unwrap();
        file.set_len(64 << 20).unwrap();
        rustix::io::pwrite(&file, b"in the middle", 32 << 20).unwrap();
        drop(file);
        let opened = std::fs::File::open(&from).unwrap();
        let copy_to = std::fs::File::create(&to).unwrap();
        let mut told = 0;
        let count = &mut |bytes| told += bytes;
        copy(&opened, &copy_to, 64 << 20, Sharing::Never, count).unwrap();
        assert!(told < 1 << 20, "{told} bytes of a file of holes");
        let about = std::fs::metadata(&to).unwrap();
        assert_eq!(about.len(), 64 << 20);
        assert!(about.blocks() * 512 < 1 << 20);
        assert!(std::fs::read(&to).unwrap() == std::fs::read(&from).unwrap());
        let short = std::fs::File::create(place.path().join("short")).unwrap();
        by_hand(opened.as_fd(), short.as_fd(), 0..100, &mut |_| {}).unwrap();
        assert_eq!(short.metadata().unwrap().len(), 100);
    }
}
