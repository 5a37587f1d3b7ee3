//! Puts entries beneath an open folder without ever following a link.

use super::Shape;
use super::error::{Refusal, UnpackError};
use super::layer::{self, Asks, Brought};
use super::name::EntryName;
use crate::erase::erase_at;
use rustix::fs::{
    AtFlags, Dir, FileType, Gid, Mode, OFlags, ResolveFlags, Timespec, Timestamps, Uid, chownat,
    fchmod, fchown, futimens, linkat, mkdirat, openat, openat2, statat, symlinkat, unlinkat,
    utimensat,
};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

const BENEATH: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS);
/// Links count, and lead nowhere but into the tree.
const IN_ROOT: ResolveFlags = ResolveFlags::IN_ROOT.union(ResolveFlags::NO_MAGICLINKS);
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
    /// What a layer brought so far; a whole tree keeps no such list.
    layer: Option<Brought>,
}

impl<'root> Tree<'root> {
    pub(super) fn new(root: BorrowedFd<'root>, shape: Shape) -> Self {
        Self {
            root,
            last: None,
            folders: Vec::new(),
            folder_names_bytes: 0,
            implied: 0,
            layer: match shape {
                Shape::Whole => None,
                Shape::Layer => Some(Brought::default()),
            },
        }
    }

    /// Hides what the layer's entry `name` says; `false` when it is an ordinary entry.
    pub(super) fn hide(&mut self, name: &EntryName) -> Result<bool, UnpackError> {
        let refused = |why| UnpackError::refused(name.as_bytes(), why);
        match layer::asks(name).map_err(refused)? {
            Asks::Entry => return Ok(false),
            Asks::Nothing => {}
            Asks::HideContent(folder) => self.empty(name, folder)?,
            Asks::Hide(hidden) if self.brought(hidden.as_bytes()) => {
                self.empty(name, hidden.as_bytes().to_vec())?;
            }
            Asks::Hide(hidden) => {
                let (folder, own) = hidden.split();
                match self.open(folder) {
                    Ok(folder) => remove(folder.as_fd(), OsStr::from_bytes(own))
                        .map_err(|error| UnpackError::io("hide what is below", name, error))?,
                    // Nothing can be there.
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                    Err(error) => return Err(failed("hide what is below", name, error)),
                }
            }
        }
        Ok(true)
    }

    /// Removes from a folder, and from those in it, what this layer did not bring.
    fn empty(&mut self, of: &EntryName, folder: Vec<u8>) -> Result<(), UnpackError> {
        let failed = |error: io::Error| UnpackError::io("hide what is below", of, error);
        let mut waiting = vec![folder];
        while let Some(path) = waiting.pop() {
            let layer = self.layer.as_mut();
            if !layer.is_some_and(|layer| layer.empties(&path)) {
                continue;
            }
            match open_folder(self.root, &path, FOLDER.union(OFlags::NOFOLLOW), IN_ROOT) {
                Ok(folder) => waiting.extend(self.empty_one(&folder, &path).map_err(failed)?),
                // No folder, or a link to one, which is a thing of its own.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(error) => return Err(failed(error.into())),
            }
        }
        Ok(())
    }

    /// Says what is left in it: what this layer brought.
    fn empty_one(&self, folder: &OwnedFd, path: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        let mut left = Vec::new();
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            let own = entry.file_name().to_bytes();
            let whole = match path {
                _ if own == b"." || own == b".." => continue,
                [] => own.to_vec(),
                path => [path, own].join(&b'/'),
            };
            if self.brought(&whole) {
                left.push(whole);
            } else {
                remove(folder.as_fd(), OsStr::from_bytes(own))?;
            }
        }
        Ok(left)
    }

    fn brought(&self, name: &[u8]) -> bool {
        self.layer.as_ref().is_none_or(|layer| layer.has(name))
    }

    fn bring(&mut self, name: &EntryName) {
        if let Some(layer) = &mut self.layer {
            layer.add(name.as_bytes());
        }
    }

    /// A folder of the tree. In a layer it may lie behind links of layers below, which lead where
    /// they would lead in a box.
    fn open(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        match self.layer {
            None => open_beneath(self.root, path),
            Some(_) => open_folder(self.root, path, FOLDER, IN_ROOT),
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
            let replaces = !self.brought(name.as_bytes());
            let parent = self.parent(name, parent)?;
            let made = match make_folder(parent, own) {
                // A file or link of a layer below.
                Err(Errno::EXIST) if replaces => {
                    unlinkat(parent, OsStr::from_bytes(own), AtFlags::empty())
                        .and_then(|()| make_folder(parent, own))
                }
                made => made,
            };
            made.map_err(|error| failed("make", name, error))?;
        }
        self.bring(name);
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
        let folder = self.open(folder).map_err(|_| nothing())?;
        let found = statat(&folder, OsStr::from_bytes(file), AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|_| nothing())?;
        // A link is a file with a name as well; it is not followed, neither here nor below.
        let kind = FileType::from_raw_mode(found.st_mode);
        let linkable =
            kind == FileType::RegularFile || (kind == FileType::Symlink && self.layer.is_some());
        if !linkable || target == name {
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
            self.open(name.as_bytes())
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
        let replaces = !self.brought(name.as_bytes());
        let parent = self.parent(name, parent)?;
        let own = OsStr::from_bytes(own);
        let result = match way(parent, own) {
            Err(Errno::EXIST) => match unlinkat(parent, own, AtFlags::empty()) {
                Err(Errno::ISDIR) if replaces => {
                    erase_at(parent, Path::new(own))
                        .map_err(|error| UnpackError::io("replace", name, error))?;
                    way(parent, own)
                }
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
        let result = result.map_err(|error| failed("make", name, error))?;
        self.bring(name);
        Ok(result)
    }

    /// As [`make_folders`], each opened from the root on, since links may lie on the way.
    fn make_in_root(&mut self, path: &[u8]) -> Result<OwnedFd, Errno> {
        let mut folder = self.open(b"")?;
        let mut end = 0;
        for part in path.split(|byte| *byte == b'/') {
            end += part.len();
            folder = match self.open(&path[..end]) {
                Err(Errno::NOENT) => {
                    make_folder(folder.as_fd(), part)?;
                    self.implied += 1;
                    let folder = self.open(&path[..end])?;
                    fchmod(&folder, Mode::from_raw_mode(0o755))?; // whatever the umask is
                    folder
                }
                opened => opened?,
            };
            end += 1;
        }
        Ok(folder)
    }

    /// The folder an entry lies in, made where the archive left it out.
    fn parent(&mut self, of: &EntryName, path: &[u8]) -> Result<BorrowedFd<'_>, UnpackError> {
        if self.last.as_ref().is_none_or(|(last, _)| last != path) {
            let folder = match (self.open(path), &self.layer) {
                (Err(Errno::NOENT), None) => make_folders(self.root, path, &mut self.implied),
                (Err(Errno::NOENT), Some(_)) => self.make_in_root(path),
                (opened, _) => opened,
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
    open_folder(root, path, FOLDER, BENEATH)
}

fn open_folder(
    root: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    let path = if path.is_empty() { b"." } else { path };
    openat2(root, OsStr::from_bytes(path), flags, Mode::empty(), resolve)
}

/// Removes whatever has the name; nothing may have it.
fn remove(folder: BorrowedFd<'_>, own: &OsStr) -> io::Result<()> {
    match unlinkat(folder, own, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(Errno::ISDIR) => erase_at(folder, Path::new(own)),
        Err(error) => Err(error.into()),
    }
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
