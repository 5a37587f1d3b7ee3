//! Copies a tree that a box has written: content, owners, modes, extended attributes, times, hard
//! links, links, fifos, sockets, holes, and the character devices an overlay hides names with.

use super::attributes::{Xattrs, dress, dress_at, xattrs, xattrs_at};
use super::content::{self, Sharing};
use super::walk::{Entry, FOLDER, Trail, Visit, walk};
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, fstat, linkat, mkdirat, mknodat, openat, readlinkat,
    renameat, symlinkat,
};
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::CStr;
use std::io;

/// Files with several names of which not all were seen yet.
const LINKED_MAX: usize = 4 << 20;

/// What was copied so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Copied {
    pub(crate) files: u64,
    /// Written, not shared.
    pub(crate) bytes: u64,
    /// Space the files take, shared content counted in full.
    pub(crate) size: u64,
}

/// What a copy is made with.
pub(crate) struct Copier<'a> {
    pub(crate) sharing: Sharing,
    /// A folder of our own on the same file system: a file with several names waits there for the
    /// rest of them.
    pub(crate) links: BorrowedFd<'a>,
    /// Told after every file.
    pub(crate) told: &'a mut dyn FnMut(&Copied),
}

impl Copier<'_> {
    /// Copies all that is in the folder `from` into the empty folder `to`, and what `from` itself
    /// is besides its content. Names in both are linked as in the source.
    ///
    /// # Errors
    /// What the kernel says; what was copied so far stays.
    pub(crate) fn copy(&mut self, from: BorrowedFd<'_>, to: OwnedFd) -> io::Result<Copied> {
        let stat = fstat(from)?;
        let mut copy = Copy {
            sharing: self.sharing,
            links: self.links,
            told: self.told,
            trail: Trail::new(to)?,
            linked: HashMap::new(),
            next_link: 0,
            copied: Copied::default(),
        };
        walk(from, &mut copy)?;
        dress(copy.trail.last(), &stat, &xattrs(from)?)?;
        Ok(copy.copied)
    }
}

/// A file with several names.
struct Linked {
    number: u64,
    /// Names that were not seen yet.
    missing: u64,
}

struct Copy<'a> {
    sharing: Sharing,
    links: BorrowedFd<'a>,
    told: &'a mut dyn FnMut(&Copied),
    /// Where the copy stands.
    trail: Trail,
    /// By device and inode.
    linked: HashMap<(u64, u64), Linked>,
    next_link: u64,
    copied: Copied,
}

impl Visit for Copy<'_> {
    fn enter(&mut self, entry: &Entry<'_>, _opened: BorrowedFd<'_>) -> io::Result<()> {
        mkdirat(self.trail.last(), entry.name, Mode::RWXU)?;
        let made = openat(self.trail.last(), entry.name, FOLDER, Mode::empty())?;
        self.trail.push(made)?;
        self.count(entry.stat);
        Ok(())
    }

    fn file(&mut self, entry: &Entry<'_>) -> io::Result<()> {
        if entry.stat.st_nlink > 1 && self.link(entry)? {
            return Ok(());
        }
        let made = match entry.kind() {
            FileType::RegularFile => self.regular(entry)?,
            FileType::Symlink => self.symlink(entry)?,
            FileType::Fifo | FileType::Socket | FileType::CharacterDevice => self.node(entry)?,
            FileType::BlockDevice | FileType::Directory | FileType::Unknown => {
                return Err(io::Error::new(
                    io::ErrorKind::Unsupported,
                    format!(
                        "`{}` is no file a box can have",
                        entry.name.to_string_lossy()
                    ),
                ));
            }
        };
        if made == Made::Nothing {
            return Ok(());
        }
        if entry.stat.st_nlink > 1 {
            self.keep_for_links(entry)?;
        }
        self.copied.files += 1;
        self.count(entry.stat);
        (self.told)(&self.copied);
        Ok(())
    }

    fn leave(&mut self, opened: BorrowedFd<'_>, stat: &Stat) -> io::Result<()> {
        dress(self.trail.last(), stat, &xattrs(opened)?)?;
        self.trail.pop()
    }
}

#[derive(PartialEq)]
enum Made {
    File,
    /// It is gone, or something else by now.
    Nothing,
}

impl Copy<'_> {
    fn count(&mut self, stat: &Stat) {
        self.copied.size += super::measure::space_of(stat);
    }

    /// Links to a file that was copied under another name before. False: it was not.
    fn link(&mut self, entry: &Entry<'_>) -> io::Result<bool> {
        let key = (entry.stat.st_dev, entry.stat.st_ino);
        let Some(linked) = self.linked.get_mut(&key) else {
            return Ok(false);
        };
        linked.missing -= 1;
        let (name, last) = (linked.number.to_string(), linked.missing == 0);
        let to = self.trail.last();
        if last {
            // Moved, not linked: there are never more names than the source had, which may be as
            // many as the file system allows.
            renameat(self.links, &name, to, entry.name)?;
            self.linked.remove(&key);
        } else {
            linkat(self.links, &name, to, entry.name, AtFlags::empty())?;
        }
        Ok(true)
    }

    fn keep_for_links(&mut self, entry: &Entry<'_>) -> io::Result<()> {
        if self.linked.len() >= LINKED_MAX {
            return Err(Errno::NOBUFS.into());
        }
        let number = self.next_link;
        self.next_link += 1;
        let (from, name) = (self.trail.last(), number.to_string());
        linkat(from, entry.name, self.links, &name, AtFlags::empty())?;
        let missing = entry.stat.st_nlink - 1;
        let key = (entry.stat.st_dev, entry.stat.st_ino);
        self.linked.insert(key, Linked { number, missing });
        Ok(())
    }

    fn regular(&mut self, entry: &Entry<'_>) -> io::Result<Made> {
        // Not blocking, should it be a fifo by now.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let from = match openat(entry.folder, entry.name, flags, Mode::empty()) {
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Ok(Made::Nothing),
            from => from?,
        };
        let stat = fstat(&from)?;
        if !FileType::from_raw_mode(stat.st_mode).is_file() {
            return Ok(Made::Nothing);
        }
        let to = create(self.trail.last(), entry.name)?;
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        let (copied, told) = (&mut self.copied, &mut *self.told);
        content::copy(&from, &to, size, self.sharing, &mut |bytes| {
            copied.bytes += bytes;
            told(copied);
        })?;
        dress(&to, &stat, &xattrs(from.as_fd())?)?;
        Ok(Made::File)
    }

    fn symlink(&mut self, entry: &Entry<'_>) -> io::Result<Made> {
        let target = match readlinkat(entry.folder, entry.name, Vec::new()) {
            Err(Errno::NOENT | Errno::INVAL) => return Ok(Made::Nothing),
            target => target?,
        };
        symlinkat(target, self.trail.last(), entry.name)?;
        self.dress(entry)
    }

    fn node(&mut self, entry: &Entry<'_>) -> io::Result<Made> {
        let is_device = entry.kind() == FileType::CharacterDevice;
        let device = if is_device { entry.stat.st_rdev } else { 0 };
        let to = self.trail.last();
        mknodat(to, entry.name, entry.kind(), Mode::empty(), device)?;
        self.dress(entry)
    }

    fn dress(&self, entry: &Entry<'_>) -> io::Result<Made> {
        let xattrs: Xattrs = match xattrs_at(entry) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            xattrs => xattrs?,
        };
        dress_at(self.trail.last(), entry.name, entry.stat, &xattrs)?;
        Ok(Made::File)
    }
}

fn create(folder: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(folder, name, flags, Mode::RUSR | Mode::WUSR)?)
}

#[cfg(test)]
mod tests {
    use super::super::measure::measure;
    use super::*;
    use rustix::fs::CWD;
    use std::os::unix::fs::MetadataExt as _;
    use std::path::Path;

    fn opened(path: &Path) -> OwnedFd {
        openat(CWD, path, FOLDER, Mode::empty()).unwrap()
    }

    /// A tree with a file at the end of 3,000 folders that has a name at the top as well.
    fn make_deep(top: &Path) {
        std::fs::create_dir(top).unwrap();
        std::fs::write(top.join("first"), "of two names").unwrap();
        let (first, mut folder) = (opened(top), opened(top));
        for _ in 0..3000 {
            mkdirat(&folder, "d", Mode::RWXU).unwrap();
            folder = openat(&folder, "d", FOLDER, Mode::empty()).unwrap();
        }
        linkat(&first, "first", &folder, "last", AtFlags::empty()).unwrap();
    }

    #[test]
    fn a_tree_deeper_than_any_path_is_copied_with_its_links() {
        let place = tempfile::tempdir().unwrap();
        let [from, to, links] = ["from", "to", "links"].map(|name| place.path().join(name));
        make_deep(&from);
        std::fs::create_dir(&to).unwrap();
        std::fs::create_dir(&links).unwrap();
        let (source, links) = (opened(&from), opened(&links));
        let mut calls = 0;
        let copied = Copier {
            sharing: Sharing::Never,
            links: links.as_fd(),
            told: &mut |_| calls += 1,
        }
        .copy(source.as_fd(), opened(&to))
        .unwrap();
        assert_eq!((copied.files, copied.bytes), (1, 12));
        assert!(calls > 0);
        assert_eq!(std::fs::metadata(to.join("first")).unwrap().nlink(), 2);
        let left = std::fs::read_dir(place.path().join("links")).unwrap();
        assert_eq!(left.count(), 0, "every name was seen");
        let sizes = [&from, &to].map(|top| measure(opened(top).as_fd()).unwrap());
        assert_eq!(sizes[0], sizes[1]);
        for top in [from, to] {
            box_runtime::erase::erase(&top).unwrap();
        }
    }
}
