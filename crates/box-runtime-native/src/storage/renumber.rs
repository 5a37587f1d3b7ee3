//! Changes to the root of a box were once kept with the box's real ids; this takes them back to
//! 0–65535, as everything else on disk has them.

use super::attributes::{dress, dress_at, xattrs, xattrs_at};
use super::walk::{Entry, FOLDER, Visit, walk};
use crate::launch::IDS;
use rustix::fd::{AsFd as _, BorrowedFd};
use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, openat};
use rustix::io::Errno;
use std::io;
use std::path::Path;

/// Renumbers the folder at `path` if its ids begin at `offset`. Cut short, it goes on where it was:
/// the folder itself comes last.
///
/// # Errors
/// What the kernel says.
pub(crate) fn settle(path: &Path, offset: u32) -> io::Result<()> {
    let top = match openat(CWD, path, FOLDER, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        top => top?,
    };
    let stat = fstat(&top)?;
    let shift = Shift { offset };
    if shift.of(&stat).is_none() {
        return Ok(());
    }
    walk(top.as_fd(), &mut Shift { offset })?;
    shift.folder(top.as_fd(), &stat)
}

struct Shift {
    offset: u32,
}

impl Shift {
    /// What a file is to be; `None` when its ids are right.
    fn of(&self, stat: &Stat) -> Option<Stat> {
        let inside = |id: u32| id.checked_sub(self.offset).filter(|id| *id < IDS);
        let (user, group) = (inside(stat.st_uid), inside(stat.st_gid));
        if user.is_none() && group.is_none() {
            return None;
        }
        let mut shifted = *stat;
        shifted.st_uid = user.unwrap_or(stat.st_uid);
        shifted.st_gid = group.unwrap_or(stat.st_gid);
        Some(shifted)
    }

    fn folder(&self, folder: BorrowedFd<'_>, stat: &Stat) -> io::Result<()> {
        match self.of(stat) {
            Some(shifted) => dress(folder, &shifted, &xattrs(folder)?),
            None => Ok(()),
        }
    }
}

impl Visit for Shift {
    fn enter(&mut self, _entry: &Entry<'_>, _opened: BorrowedFd<'_>) -> io::Result<()> {
        Ok(())
    }

    fn file(&mut self, entry: &Entry<'_>) -> io::Result<()> {
        let Some(shifted) = self.of(entry.stat) else {
            return Ok(());
        };
        if entry.kind() != FileType::RegularFile {
            return dress_at(entry.folder, entry.name, &shifted, &xattrs_at(entry)?);
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(entry.folder, entry.name, flags, Mode::empty())?;
        dress(&file, &shifted, &xattrs(file.as_fd())?)
    }

    fn leave(&mut self, opened: BorrowedFd<'_>, stat: &Stat) -> io::Result<()> {
        self.folder(opened, stat)
    }
}
