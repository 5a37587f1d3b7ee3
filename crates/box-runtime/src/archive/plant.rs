//! Puts members in their places beneath a folder, never following a link, never replacing anything.
//!
//! A member follows the folder it lies in, so that only the folders from the top to the current one
//! are remembered. A folder gets its owner, mode and time when it is left.

use super::attributes::{Attributes, Setting};
use super::budget::Budget;
use super::content::{CHUNK_BYTES, Failure, Filling};
use super::error::{ArchiveError, Offence};
use super::layout::{Part, Place, State};
use super::walk::{FOLDER, beneath};
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, chmodat, chownat, fstat, ioctl_ficlone, linkat, mkdirat,
    mknodat, openat, symlinkat, utimensat,
};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;

/// `PATH_MAX` without its zero byte (limits.h).
const TARGET_BYTES_MAX: usize = 4095;
const NEW: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
const OLD: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

/// Makes a folder in an open one.
pub(super) type MakeFolder<'a> = &'a dyn Fn(BorrowedFd<'_>, &OsStr) -> io::Result<()>;

/// The tree a member is of.
#[derive(Debug)]
pub(super) struct Home {
    pub(super) state: State,
    pub(super) part: Part,
    /// How long the tree's own name is.
    pub(super) prefix: usize,
}

/// What a hard link is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kin {
    /// Another name of a file of the tree.
    Name,
    /// A file that is the same in this earlier state: equal, and yet another.
    Copy(State),
}

impl Home {
    /// What a hard link of this tree to `target` is.
    pub(super) fn kinship(&self, name: &[u8], target: &[u8], there: Place) -> Result<Kin, Offence> {
        let Place::Tree {
            state,
            part,
            prefix,
        } = there
        else {
            return Err(Offence::HardLink);
        };
        if part != self.part {
            return Err(Offence::HardLink);
        }
        if state == self.state {
            return Ok(Kin::Name);
        }
        let same = name.get(self.prefix..) == target.get(prefix..) && target.len() > prefix;
        if same {
            Ok(Kin::Copy(state))
        } else {
            Err(Offence::HardLink)
        }
    }
}

/// The folder being filled. Names are relative to it.
#[derive(Debug)]
pub(super) struct Plant<'into> {
    pub(super) into: BorrowedFd<'into>,
    pub(super) setting: Setting,
    /// The current folder, and its path; empty for the top.
    current: OwnedFd,
    path: Vec<u8>,
    /// What the folders from the top to the current one are to get, with the length of their paths.
    open: Vec<(usize, Option<Attributes>)>,
}

impl<'into> Plant<'into> {
    pub(super) fn new(into: BorrowedFd<'into>, setting: Setting) -> io::Result<Self> {
        Ok(Self {
            current: openat(into, ".", FOLDER, Mode::empty())?,
            into,
            setting,
            path: Vec::new(),
            open: Vec::new(),
        })
    }

    /// A new folder, which is the current one from then on.
    pub(super) fn folder(
        &mut self,
        name: &[u8],
        attributes: Attributes,
    ) -> Result<(), ArchiveError> {
        self.folder_made(name, Some(attributes), &|folder, own| {
            Ok(mkdirat(folder, own, Mode::RWXU)?)
        })
    }

    /// As [`Plant::folder`], made by `make`; left as it was made unless it has attributes.
    pub(super) fn folder_made(
        &mut self,
        name: &[u8],
        attributes: Option<Attributes>,
        make: MakeFolder<'_>,
    ) -> Result<(), ArchiveError> {
        let own = self.go_to_parent(name)?;
        make(self.current.as_fd(), &own).map_err(|error| {
            if error.kind() == io::ErrorKind::AlreadyExists {
                ArchiveError::refused(name, Offence::Twice)
            } else {
                ArchiveError::entry("make", name, error)
            }
        })?;
        let entered = openat(&self.current, &own, FOLDER, Mode::empty());
        self.current = entered.map_err(|errno| failed("enter", name, errno))?;
        self.path = name.to_vec();
        self.open.push((name.len(), attributes));
        Ok(())
    }

    /// A new file, to be filled and given its attributes.
    pub(super) fn file(&mut self, name: &[u8]) -> Result<File, ArchiveError> {
        let own = self.go_to_parent(name)?;
        openat(&self.current, &own, NEW, Mode::RUSR | Mode::WUSR)
            .map(File::from)
            .map_err(|errno| failed("make", name, errno))
    }

    pub(super) fn link(
        &mut self,
        name: &[u8],
        target: &[u8],
        attributes: &Attributes,
    ) -> Result<(), ArchiveError> {
        if target.is_empty() || target.contains(&0) || target.len() > TARGET_BYTES_MAX {
            return Err(ArchiveError::refused(name, Offence::LinkTarget));
        }
        let own = self.go_to_parent(name)?;
        symlinkat(OsStr::from_bytes(target), &self.current, &own)
            .and_then(|()| self.own(&own, attributes))
            .and_then(|()| self.date(&own, attributes))
            .map_err(|errno| failed("make", name, errno))
    }

    pub(super) fn fifo(
        &mut self,
        name: &[u8],
        attributes: &Attributes,
    ) -> Result<(), ArchiveError> {
        self.node(name, FileType::Fifo, attributes)
    }

    /// What hides a name of the layers below (overlayfs.rst, *whiteouts*).
    pub(super) fn whiteout(
        &mut self,
        name: &[u8],
        attributes: &Attributes,
    ) -> Result<(), ArchiveError> {
        self.node(name, FileType::CharacterDevice, attributes)
    }

    fn node(
        &mut self,
        name: &[u8],
        kind: FileType,
        attributes: &Attributes,
    ) -> Result<(), ArchiveError> {
        let own = self.go_to_parent(name)?;
        let mode = Mode::from_raw_mode(attributes.mode);
        mknodat(&self.current, &own, kind, Mode::RUSR | Mode::WUSR, 0)
            .and_then(|()| self.own(&own, attributes))
            .and_then(|()| chmodat(&self.current, &own, mode, AtFlags::empty()))
            .and_then(|()| self.date(&own, attributes))
            .map_err(|errno| failed("make", name, errno))
    }

    /// The owner of what cannot be opened.
    fn own(&self, own: &OsStr, attributes: &Attributes) -> Result<(), Errno> {
        let Some((uid, gid)) = attributes.owner(self.setting) else {
            return Ok(());
        };
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        chownat(&self.current, own, Some(uid), Some(gid), flags)
    }

    fn date(&self, own: &OsStr, attributes: &Attributes) -> Result<(), Errno> {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        utimensat(&self.current, own, &attributes.times(), flags)
    }

    /// Another name of a file of this folder.
    pub(super) fn hard_link(&mut self, name: &[u8], target: &[u8]) -> Result<(), ArchiveError> {
        let refused = || ArchiveError::refused(name, Offence::HardLink);
        drop(file_at(self.into, target).ok_or_else(refused)?);
        let own = self.go_to_parent(name)?;
        let (folder, last) = split(target);
        let folder = beneath(self.into, folder, FOLDER).map_err(|_| refused())?;
        // Without AT_SYMLINK_FOLLOW the last part is not followed (linkat(2)).
        let last = OsStr::from_bytes(last);
        linkat(folder, last, &self.current, &own, AtFlags::empty())
            .map_err(|errno| failed("make", name, errno))
    }

    /// A file with the content of another.
    pub(super) fn copy(
        &mut self,
        name: &[u8],
        old: &File,
        attributes: &Attributes,
        budget: &mut Budget,
    ) -> Result<(), ArchiveError> {
        let new = self.file(name)?;
        let file = copied(old, new, budget).map_err(|failure| failure.of(name))?;
        let set = attributes.set(&file, self.setting);
        set.map_err(|errno| failed("finish", name, errno))
    }

    /// Makes the folder of `name` the current one; gives its own name in it.
    fn go_to_parent(&mut self, name: &[u8]) -> Result<std::ffi::OsString, ArchiveError> {
        let (parent, own) = split(name);
        while !is_at_or_above(&self.path, parent) {
            self.leave()?;
        }
        if self.path != parent {
            return Err(ArchiveError::refused(name, Offence::OutOfOrder));
        }
        Ok(OsStr::from_bytes(own).to_owned())
    }

    /// Gives the current folder what it is to get, and goes up.
    fn leave(&mut self) -> Result<(), ArchiveError> {
        let Some((_, attributes)) = self.open.pop() else {
            return Ok(());
        };
        if let Some(attributes) = attributes {
            let done = attributes.set(&self.current, self.setting);
            done.map_err(|errno| failed("finish", &self.path, errno))?;
        }
        let above = self.open.last().map_or(0, |(bytes, _)| *bytes);
        self.path.truncate(above);
        self.current = beneath(self.into, &self.path, FOLDER)
            .map_err(|errno| failed("return to", &self.path, errno))?;
        Ok(())
    }

    /// Leaves every folder.
    pub(super) fn finish(&mut self) -> Result<(), ArchiveError> {
        while !self.open.is_empty() {
            self.leave()?;
        }
        Ok(())
    }
}

/// Fills a new file with the content of another, sharing it where the file system can.
fn copied(old: &File, new: File, budget: &mut Budget) -> Result<File, Failure> {
    if ioctl_ficlone(&new, old).is_ok() {
        // It takes no room now, and all of it once it is changed.
        budget.store(old.metadata()?.len())?;
        return Ok(new);
    }
    let mut filling = Filling::new(new);
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut old = old;
    loop {
        let mut filled = 0;
        while filled < buffer.len() {
            match old.read(&mut buffer[filled..])? {
                0 => break,
                count => filled += count,
            }
        }
        if filled == 0 {
            break;
        }
        filling.add(&buffer[..filled], budget)?;
    }
    Ok(filling.finish()?)
}

/// The plain file at `path`, reached through no link.
pub(super) fn file_at(top: BorrowedFd<'_>, path: &[u8]) -> Option<File> {
    let old = beneath(top, path, OLD).ok()?;
    let stat = fstat(&old).ok()?;
    let plain = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    plain.then(|| File::from(old))
}

/// The folder of a name (empty: the top) and its last part.
fn split(name: &[u8]) -> (&[u8], &[u8]) {
    match name.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&name[..slash], &name[slash + 1..]),
        None => (&[], name),
    }
}

fn is_at_or_above(folder: &[u8], path: &[u8]) -> bool {
    match path.strip_prefix(folder) {
        Some(rest) => folder.is_empty() || rest.is_empty() || rest.starts_with(b"/"),
        None => false,
    }
}

fn failed(action: &'static str, name: &[u8], errno: Errno) -> ArchiveError {
    match errno {
        Errno::EXIST => ArchiveError::refused(name, Offence::Twice),
        errno => ArchiveError::entry(action, name, errno),
    }
}
