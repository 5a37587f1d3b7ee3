//! Puts entries beneath an open folder without ever following a link.

use super::error::{Refusal, UnpackError};
use super::name::EntryName;
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, ResolveFlags, Timespec, Timestamps, Uid, chownat, fchmod,
    fchown, futimens, linkat, mkdirat, openat, openat2, statat, symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

const BENEATH: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS);
const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

/// Names of folders that are kept until the end, bytes; a distribution's are a few million.
const FOLDER_NAMES_BYTES_MAX: usize = 64 << 20;

/// What is set on an entry once it is there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Meta {
    pub(super) mode: u32,
    /// User and group; absent: left as they are.
    pub(super) owner: Option<(u32, u32)>,
    pub(super) mtime: i64,
}

/// The folder being filled.
#[derive(Debug)]
pub(super) struct Tree<'root> {
    root: BorrowedFd<'root>,
    /// The folder of the entry before, which is mostly this one's too. No folder is ever replaced,
    /// so it stays the right one.
    last: Option<(Vec<u8>, OwnedFd)>,
    /// Folders get mode and time at the end: both would change or be in the way until then.
    folders: Vec<(EntryName, Meta)>,
    folder_names_bytes: usize,
    implied: u64,
}

impl<'root> Tree<'root> {
    pub(super) fn new(root: BorrowedFd<'root>) -> Self {
        Self {
            root,
            last: None,
            folders: Vec::new(),
            folder_names_bytes: 0,
            implied: 0,
        }
    }

    /// How many folders the archive named only as parts of longer names. They cost as much as
    /// entries do.
    pub(super) fn implied(&self) -> u64 {
        self.implied
    }

    /// A new file, to be filled and then [`set`].
    pub(super) fn file(&mut self, name: &EntryName) -> Result<File, UnpackError> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        self.make(name, |parent, own| {
            openat(parent, own, flags, Mode::RUSR | Mode::WUSR)
        })
        .map(File::from)
    }

    pub(super) fn folder(&mut self, name: &EntryName, meta: &Meta) -> Result<(), UnpackError> {
        if !name.is_root() {
            let (parent, own) = name.split();
            let parent = self.parent(name, parent)?;
            make_folder(parent, own).map_err(|error| failed("make", name, error))?;
        }
        self.folder_names_bytes += name.as_bytes().len();
        if self.folder_names_bytes > FOLDER_NAMES_BYTES_MAX {
            let max = FOLDER_NAMES_BYTES_MAX;
            let why = Refusal::FolderNames { max };
            return Err(UnpackError::refused(name.as_bytes(), why));
        }
        self.folders.push((name.clone(), *meta));
        Ok(())
    }

    /// A symbolic link, stored as it is.
    pub(super) fn link(
        &mut self,
        name: &EntryName,
        target: &[u8],
        meta: &Meta,
    ) -> Result<(), UnpackError> {
        if target.is_empty() || target.contains(&0) {
            return Err(UnpackError::refused(name.as_bytes(), Refusal::LinkTarget));
        }
        self.make(name, |parent, own| {
            symlinkat(OsStr::from_bytes(target), parent, own)?;
            if let Some((uid, gid)) = meta.owner {
                let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
                chownat(parent, own, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
            }
            utimensat(parent, own, &times(meta), AtFlags::SYMLINK_NOFOLLOW)
        })
    }

    /// Another name for a file that was unpacked before.
    pub(super) fn hard_link(
        &mut self,
        name: &EntryName,
        target: &EntryName,
    ) -> Result<(), UnpackError> {
        let nothing = || UnpackError::refused(name.as_bytes(), Refusal::HardLinkToNothing);
        let (folder, file) = target.split();
        let folder = open_beneath(self.root, folder).map_err(|_| nothing())?;
        let found = statat(&folder, OsStr::from_bytes(file), AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|_| nothing())?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile || target == name {
            return Err(nothing());
        }
        // Without AT_SYMLINK_FOLLOW the last part is not followed (linkat(2)).
        self.make(name, |parent, own| {
            linkat(
                &folder,
                OsStr::from_bytes(file),
                parent,
                own,
                AtFlags::empty(),
            )
        })
    }

    /// Sets modes, owners and times of the folders, the deepest first.
    pub(super) fn finish(mut self) -> Result<(), UnpackError> {
        self.folders
            .sort_by(|(a, _), (b, _)| b.as_bytes().cmp(a.as_bytes()));
        for (name, meta) in &self.folders {
            open_beneath(self.root, name.as_bytes())
                .and_then(|folder| set(&folder, meta))
                .map_err(|error| failed("finish", name, error))?;
        }
        Ok(())
    }

    /// Makes something under a name; a file or link that has it is replaced, a folder is not.
    fn make<T>(
        &mut self,
        name: &EntryName,
        way: impl Fn(BorrowedFd<'_>, &OsStr) -> Result<T, Errno>,
    ) -> Result<T, UnpackError> {
        if name.is_root() {
            return Err(UnpackError::refused(b".", Refusal::ReplacesFolder));
        }
        let (parent, own) = name.split();
        let parent = self.parent(name, parent)?;
        let own = OsStr::from_bytes(own);
        let result = match way(parent, own) {
            Err(Errno::EXIST) => match unlinkat(parent, own, AtFlags::empty()) {
                Err(Errno::ISDIR) => {
                    return Err(UnpackError::refused(
                        name.as_bytes(),
                        Refusal::ReplacesFolder,
                    ));
                }
                Err(error) => Err(error),
                Ok(()) => way(parent, own),
            },
            first => first,
        };
        result.map_err(|error| failed("make", name, error))
    }

    /// The folder an entry lies in, made where the archive left it out.
    fn parent(&mut self, of: &EntryName, path: &[u8]) -> Result<BorrowedFd<'_>, UnpackError> {
        if self.last.as_ref().is_none_or(|(last, _)| last != path) {
            let folder = match open_beneath(self.root, path) {
                Err(Errno::NOENT) => make_folders(self.root, path, &mut self.implied),
                opened => opened,
            };
            self.last = Some((
                path.to_vec(),
                folder.map_err(|error| failed("reach", of, error))?,
            ));
        }
        Ok(self
            .last
            .as_ref()
            .map_or(self.root, |(_, folder)| folder.as_fd()))
    }
}

/// Sets owner, then mode (chown(2) clears set-id bits), then time.
pub(super) fn set(file: &impl AsFd, meta: &Meta) -> Result<(), Errno> {
    if let Some((uid, gid)) = meta.owner {
        fchown(file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?;
    }
    fchmod(file, Mode::from_raw_mode(meta.mode))?;
    futimens(file, &times(meta))
}

fn times(meta: &Meta) -> Timestamps {
    let time = Timespec {
        tv_sec: meta.mtime,
        tv_nsec: 0,
    };
    Timestamps {
        last_access: time,
        last_modification: time,
    }
}

fn open_beneath(root: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd, Errno> {
    let path = if path.is_empty() { b"." } else { path };
    openat2(
        root,
        OsStr::from_bytes(path),
        FOLDER,
        Mode::empty(),
        BENEATH,
    )
}

/// The folders of a path, those that were not there 0755.
fn make_folders(root: BorrowedFd<'_>, path: &[u8], made: &mut u64) -> Result<OwnedFd, Errno> {
    let mut folder = open_beneath(root, b"")?;
    for part in path.split(|byte| *byte == b'/') {
        let new = make_folder(folder.as_fd(), part)?;
        folder = open_beneath(folder.as_fd(), part)?;
        if new {
            *made += 1;
            fchmod(&folder, Mode::from_raw_mode(0o755))?; // whatever the umask is
        }
    }
    Ok(folder)
}

/// One folder; says whether it is new. `EXIST` when something else has the name.
fn make_folder(parent: BorrowedFd<'_>, own: &[u8]) -> Result<bool, Errno> {
    let own = OsStr::from_bytes(own);
    match mkdirat(parent, own, Mode::RWXU) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => {
            let there = statat(parent, own, AtFlags::SYMLINK_NOFOLLOW)?;
            let folder = FileType::from_raw_mode(there.st_mode) == FileType::Directory;
            if folder { Ok(false) } else { Err(Errno::EXIST) }
        }
        Err(error) => Err(error),
    }
}

fn failed(action: &'static str, name: &EntryName, error: Errno) -> UnpackError {
    let why = match (action, error) {
        (_, Errno::LOOP) => Refusal::BehindLink,
        (_, Errno::NOTDIR) => Refusal::BehindFile,
        ("make", Errno::EXIST) => Refusal::FolderInPlace,
        _ => return UnpackError::io(action, name, error),
    };
    UnpackError::refused(name.as_bytes(), why)
}
