//! Where a tree is born and where it dies: in `tmp/`, on the file system boxes lie on.

use super::btrfs;
use super::content::Sharing;
use super::copy::{Copied, Copier};
use super::walk::FOLDER;
use box_api::snapshot::CopyMethod;
use box_runtime::fault;
use box_runtime::unpack::{Published, Staging};
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, Dir, FlockOperation, Mode, RenameFlags, chmodat, flock, fsync, mkdirat, openat,
    renameat_with, syncfs, unlinkat,
};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The tree in its staging folder, and the folder beside it where hard links wait.
pub(crate) const TREE: &str = "tree";
const LINKS: &str = "links";

/// A folder in `tmp/` with a tree in it, removed when dropped before the tree got its place.
#[derive(Debug)]
pub(crate) struct Cradle {
    staging: Staging,
    method: CopyMethod,
}

impl Cradle {
    /// An empty cradle; `what` begins its name and is one of those [`clear`] knows.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) fn new(tmp: &Path, what: &str, method: CopyMethod) -> io::Result<Self> {
        let staging = Staging::new(tmp, what)?;
        Ok(Self { staging, method })
    }

    /// Makes the tree an empty folder nobody else may enter; a subvolume where those are had.
    pub(crate) fn make(&self) -> io::Result<OwnedFd> {
        make_folder(self.staging.folder(), OsStr::new(TREE), self.method)?;
        self.open()
    }

    /// Makes the tree a copy of the folder at `from`: its folders in `parts`, with all that is in
    /// them. Other names are not in the copy.
    ///
    /// # Errors
    /// What the kernel says; what was copied goes with the cradle.
    pub(crate) fn copy(
        &self,
        from: &Path,
        parts: &[&str],
        told: &mut dyn FnMut(&Copied),
    ) -> io::Result<Copied> {
        let source = openat(CWD, from, FOLDER, Mode::empty())?;
        if self.method == CopyMethod::Subvolume && is_subvolume(from)? {
            btrfs::snapshot(source.as_fd(), self.staging.folder(), OsStr::new(TREE))?;
            self.drop_all_but(parts)?;
            return Ok(Copied::default());
        }
        let tree = self.make_like(from)?;
        mkdirat(self.staging.folder(), LINKS, Mode::RWXU)?;
        let links = openat(self.staging.folder(), LINKS, FOLDER, Mode::empty())?;
        let mut all = Copied::default();
        for part in parts {
            let from = openat(&source, *part, FOLDER, Mode::empty())?;
            mkdirat(&tree, *part, Mode::RWXU)?;
            let to = openat(&tree, *part, FOLDER, Mode::empty())?;
            let before = all;
            let mut add = |copied: &Copied| told(&before.and(copied));
            let mut copier = Copier {
                sharing: self.sharing(),
                links: links.as_fd(),
                told: &mut add,
            };
            all = before.and(&copier.copy(from.as_fd(), to)?);
        }
        Ok(all)
    }

    /// A plain folder for a copy of a plain folder: two of a kind can be exchanged.
    fn make_like(&self, from: &Path) -> io::Result<OwnedFd> {
        if self.method == CopyMethod::Subvolume && !is_subvolume(from)? {
            mkdirat(self.staging.folder(), TREE, Mode::RWXU)?;
            return self.open();
        }
        self.make()
    }

    pub(crate) fn sharing(&self) -> Sharing {
        match self.method {
            CopyMethod::Subvolume | CopyMethod::Reflink => Sharing::WherePossible,
            CopyMethod::Full => Sharing::Never,
        }
    }

    fn drop_all_but(&self, parts: &[&str]) -> io::Result<()> {
        let tree = self.open()?;
        for entry in Dir::read_from(&tree)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            let kept = [".", ".."].iter().chain(parts);
            if !kept.into_iter().any(|kept| kept.as_bytes() == name) {
                remove(tree.as_fd(), OsStr::from_bytes(name))?;
            }
        }
        Ok(())
    }

    /// The tree, which was made.
    pub(crate) fn open(&self) -> io::Result<OwnedFd> {
        Ok(openat(self.staging.folder(), TREE, FOLDER, Mode::empty())?)
    }

    pub(crate) fn tree(&self) -> PathBuf {
        self.staging.path().join(TREE)
    }

    pub(crate) fn folder(&self) -> BorrowedFd<'_> {
        self.staging.folder()
    }

    /// Gives the tree its place, at which nothing may be. It lasts once this returns.
    ///
    /// # Errors
    /// What the kernel says; a full disk may only show here.
    pub(crate) fn publish(self, place: &Path) -> io::Result<Published> {
        syncfs(self.open()?)?;
        let published = self.place(place)?;
        fsync(btrfs::folder_of(place)?.0)?;
        Ok(published)
    }

    /// As [`Cradle::publish`], without waiting for the disk.
    ///
    /// # Errors
    /// What the kernel says.
    pub(crate) fn place(self, place: &Path) -> io::Result<Published> {
        let (parent, name) = btrfs::folder_of(place)?;
        let flags = RenameFlags::NOREPLACE;
        match renameat_with(self.staging.folder(), TREE, &parent, name, flags) {
            Ok(()) => Ok(Published::Done),
            Err(Errno::EXIST) => Ok(Published::AlreadyThere),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Puts the tree in the place of the one that is there, in one step; the old one goes with the
    /// cradle.
    ///
    /// # Errors
    /// What the kernel says; then the old tree is still there.
    pub(crate) fn exchange(self, place: &Path) -> io::Result<()> {
        syncfs(self.open()?)?;
        let (parent, name) = btrfs::folder_of(place)?;
        let flags = RenameFlags::EXCHANGE;
        renameat_with(self.staging.folder(), TREE, &parent, name, flags)?;
        fsync(&parent)?;
        fault::point("tree.exchanged");
        Ok(())
    }
}

impl Drop for Cradle {
    fn drop(&mut self) {
        // Best effort; the staging folder, which comes next, and `clear` try again.
        drop(remove(self.staging.folder(), OsStr::new(TREE)));
    }
}

impl Copied {
    fn and(&self, more: &Self) -> Self {
        Self {
            files: self.files + more.files,
            bytes: self.bytes + more.bytes,
            size: self.size + more.size,
        }
    }
}

/// Makes an empty folder nobody else may enter; a subvolume where those are had.
pub(crate) fn make_folder(
    folder: BorrowedFd<'_>,
    name: &OsStr,
    method: CopyMethod,
) -> io::Result<()> {
    match method {
        CopyMethod::Subvolume => {
            btrfs::create(folder, name)?;
            chmodat(folder, name, Mode::RWXU, AtFlags::empty())?;
        }
        CopyMethod::Reflink | CopyMethod::Full => mkdirat(folder, name, Mode::RWXU)?,
    }
    Ok(())
}

fn is_subvolume(path: &Path) -> io::Result<bool> {
    let (parent, name) = btrfs::folder_of(path)?;
    btrfs::is_subvolume(parent.as_fd(), name)
}

/// Removes what lies at a path, in one step where it is a subvolume. Nothing there: nothing to do.
///
/// # Errors
/// What the file system said; what is left can be erased later.
pub(crate) fn erase(path: &Path) -> io::Result<()> {
    let (parent, name) = btrfs::folder_of(path)?;
    remove(parent.as_fd(), name)
}

fn remove(folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    if btrfs::is_subvolume(folder, name)? && btrfs::destroy(folder, name).is_ok() {
        return Ok(());
    }
    let inner = match openat(folder, name, FOLDER, Mode::empty()) {
        Ok(inner) => inner,
        Err(Errno::NOENT) => return Ok(()),
        Err(Errno::NOTDIR | Errno::LOOP) => {
            return Ok(unlinkat(folder, name, AtFlags::empty())?);
        }
        Err(errno) => return Err(errno.into()),
    };
    // One level down: the snapshots of a box, the tree of a cradle. What cannot be destroyed is
    // emptied and removed as any folder.
    for entry in Dir::read_from(&inner)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." && btrfs::is_subvolume(inner.as_fd(), name)? {
            drop(btrfs::destroy(inner.as_fd(), name));
        }
    }
    drop(inner);
    box_runtime::erase::erase_at(folder, Path::new(name))
}

/// Removes what crashed processes left in `tmp` under one of these names; see [`Staging`].
///
/// # Errors
/// When `tmp` cannot be read or a tree cannot be removed.
pub(crate) fn clear(tmp: &Path, names: &[&str]) -> io::Result<()> {
    for entry in std::fs::read_dir(tmp)? {
        let entry = entry?;
        let name = entry.file_name();
        let ours = |what: &&str| {
            let rest = name.to_str().and_then(|name| name.strip_prefix(*what));
            rest.is_some_and(|rest| rest.starts_with('-'))
        };
        if !names.iter().any(ours) || !entry.file_type()?.is_dir() {
            continue;
        }
        let folder = openat(CWD, entry.path(), FOLDER, Mode::empty())?;
        match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => continue,
            locked => locked?,
        }
        erase(&entry.path())?;
    }
    Ok(())
}
