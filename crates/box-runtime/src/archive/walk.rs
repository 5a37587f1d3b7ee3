//! Goes through a tree, folders before what is in them, names in order; never follows a link.

use super::attributes::{Attributes, OnDisk, OverlayNames, Read, Reading};
use super::budget::NAMES_MAX;
use super::error::ArchiveError;
use super::layout::{Part, State};
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat, openat2, readlinkat,
    statat,
};
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;

pub(super) const BENEATH: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS);
pub(super) const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// A fifo without a writer does not hold us up.
const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

/// A tree on disk, at rest.
#[derive(Debug)]
pub struct Tree<'a> {
    pub state: State,
    pub part: Part,
    pub folder: BorrowedFd<'a>,
    pub owners: OnDisk,
    pub overlay: OverlayNames,
}

impl Tree<'_> {
    pub(super) fn reading(&self) -> Reading {
        Reading {
            owners: self.owners,
            part: self.part,
            overlay: self.overlay,
        }
    }

    /// Its name in an archive.
    pub(super) fn name(&self) -> String {
        self.state.tree(self.part)
    }
}

/// Something in a tree.
#[derive(Debug)]
pub(super) enum Found {
    Folder(Attributes),
    File(File, Attributes, Stat),
    /// Another name of a file that was found before; the path of that one.
    HardLink(Vec<u8>, Attributes),
    Link(Vec<u8>, Attributes),
    Fifo(Attributes),
    Whiteout(Attributes),
    /// It cannot travel.
    Odd(&'static str),
}

/// A walk under way. `path` is relative to the tree, empty for its top.
#[derive(Debug)]
pub(super) struct Walk<'t> {
    tree: &'t Tree<'t>,
    levels: Vec<Level>,
    pub(super) path: Vec<u8>,
    current: OwnedFd,
    started: bool,
    /// Paths of files with several names, by device and inode.
    names: HashMap<(u64, u64), Vec<u8>>,
    names_bytes: usize,
    /// Whether attributes of the last thing found were left out.
    pub(super) attributes_left_out: bool,
}

/// A folder whose names are gone through.
#[derive(Debug)]
struct Level {
    names: std::vec::IntoIter<CString>,
    path_bytes: usize,
}

impl<'t> Walk<'t> {
    pub(super) fn new(tree: &'t Tree<'t>) -> io::Result<Self> {
        Ok(Self {
            levels: Vec::new(),
            path: Vec::new(),
            current: openat(tree.folder, ".", FOLDER, Mode::empty())?,
            started: false,
            names: HashMap::new(),
            names_bytes: 0,
            attributes_left_out: false,
            tree,
        })
    }

    /// The next thing; its path is [`Walk::path`]. The top comes first.
    pub(super) fn next(&mut self) -> Result<Option<Found>, ArchiveError> {
        let step = self.step();
        step.map_err(|error| match error {
            Step::Changed => ArchiveError::Changed {
                entry: crate::unpack::shown(&self.path),
            },
            Step::Io(error) => ArchiveError::entry("read", &self.path, error),
        })
    }

    fn step(&mut self) -> Result<Option<Found>, Step> {
        self.attributes_left_out = false;
        if !self.started {
            self.started = true;
            return self.enter(None).map(Some);
        }
        loop {
            let Some(level) = self.levels.last_mut() else {
                return Ok(None);
            };
            self.path.truncate(level.path_bytes);
            if let Some(name) = level.names.next() {
                add(&mut self.path, name.as_bytes());
                return self.look(&name).map(Some);
            }
            self.levels.pop();
            if let Some(above) = self.levels.last() {
                self.path.truncate(above.path_bytes);
                self.current = beneath(self.tree.folder, &self.path, FOLDER)?;
            }
        }
    }

    /// Does not go into the folder that was found last.
    pub(super) fn leave(&mut self) -> io::Result<()> {
        self.levels.pop();
        if let Some(above) = self.levels.last() {
            self.current = beneath(self.tree.folder, &self.path[..above.path_bytes], FOLDER)?;
        }
        Ok(())
    }

    fn look(&mut self, name: &CString) -> Result<Found, Step> {
        let reading = self.tree.reading();
        let stat = statat(&self.current, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let plain = || Attributes::plain(&stat, reading);
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => self.enter(Some(name)),
            FileType::RegularFile => self.file(name),
            FileType::Symlink => {
                let target = readlinkat(&self.current, name, Vec::new())?;
                Ok(Found::Link(target.into_bytes(), plain()))
            }
            FileType::Fifo => Ok(Found::Fifo(plain())),
            FileType::CharacterDevice if stat.st_rdev == 0 && self.tree.part == Part::Root => {
                Ok(Found::Whiteout(plain()))
            }
            FileType::Socket => Ok(Found::Odd("a socket")),
            FileType::CharacterDevice | FileType::BlockDevice => Ok(Found::Odd("a device")),
            FileType::Unknown => Ok(Found::Odd("of unknown kind")),
        }
    }

    fn enter(&mut self, name: Option<&CString>) -> Result<Found, Step> {
        if let Some(name) = name {
            self.current = openat(&self.current, name, FOLDER, Mode::empty())?;
        }
        let stat = fstat(&self.current)?;
        let read = Attributes::of(&self.current, &stat, self.tree.reading())?;
        self.levels.push(Level {
            names: names_in(&self.current)?.into_iter(),
            path_bytes: self.path.len(),
        });
        Ok(Found::Folder(self.noted(read)))
    }

    fn file(&mut self, name: &CString) -> Result<Found, Step> {
        let file = openat(&self.current, name, FILE, Mode::empty())?;
        let stat = fstat(&file)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(Step::Changed);
        }
        let read = Attributes::of(&file, &stat, self.tree.reading())?;
        let attributes = self.noted(read);
        if stat.st_nlink > 1 {
            let key = (stat.st_dev, stat.st_ino);
            if let Some(first) = self.names.get(&key) {
                return Ok(Found::HardLink(first.clone(), attributes));
            }
            if self.names_bytes + self.path.len() <= NAMES_MAX {
                self.names_bytes += self.path.len();
                self.names.insert(key, self.path.clone());
            }
        }
        Ok(Found::File(File::from(file), attributes, stat))
    }

    fn noted(&mut self, read: Read) -> Attributes {
        self.attributes_left_out = read.left_out;
        read.attributes
    }
}

/// The file at `path` of another tree, if it is one.
pub(super) fn file_at(tree: &Tree<'_>, path: &[u8]) -> Option<(File, Attributes, Stat)> {
    let file = beneath(tree.folder, path, FILE).ok()?;
    let stat = fstat(&file).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return None;
    }
    let read = Attributes::of(&file, &stat, tree.reading()).ok()?;
    Some((File::from(file), read.attributes, stat))
}

pub(super) fn beneath(top: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let path = if path.is_empty() { b"." } else { path };
    openat2(top, OsStr::from_bytes(path), flags, Mode::empty(), BENEATH)
}

/// Adds a part to a path.
pub(super) fn add(path: &mut Vec<u8>, part: &[u8]) {
    if !path.is_empty() && !part.is_empty() {
        path.push(b'/');
    }
    path.extend(part);
}

fn names_in(folder: &OwnedFd) -> Result<Vec<CString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder.as_fd())? {
        let entry = entry?;
        let name = entry.file_name();
        if name != c"." && name != c".." {
            names.push(name.to_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Why a walk ended early.
#[derive(Debug)]
enum Step {
    /// It is something else than a moment ago.
    Changed,
    Io(io::Error),
}

impl From<Errno> for Step {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT | Errno::LOOP | Errno::NOTDIR => Self::Changed,
            errno => Self::Io(errno.into()),
        }
    }
}

impl From<io::Error> for Step {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
