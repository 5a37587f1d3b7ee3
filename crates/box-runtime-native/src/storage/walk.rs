//! Goes through a tree that a box has written, and may be writing to at this moment.
//!
//! Every step is one name below an open folder, and no link is followed, so that whatever a box
//! renames or links meanwhile, nothing outside the tree is ever reached. Nothing recurses and few
//! descriptors are held: a box can nest folders deeper than a stack is high.

use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::{CStr, CString};
use std::io;

/// Levels of a tree whose descriptors stay open; those above are opened again by way of `..`.
const OPEN_LEVELS_MAX: usize = 64;
/// Folders that wait to be entered, on all levels together.
const WAITING_MAX: usize = 4 << 20;

/// How a folder of a box is opened.
pub(crate) const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// A name in a folder, and what it was when it was looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<'a> {
    pub(crate) folder: BorrowedFd<'a>,
    pub(crate) name: &'a CStr,
    pub(crate) stat: &'a Stat,
}

impl Entry<'_> {
    pub(crate) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }
}

/// What is done with a tree. In each folder the files come first, then its folders one by one.
pub(crate) trait Visit {
    /// A folder below the top, before what is in it.
    fn enter(&mut self, entry: &Entry<'_>, opened: BorrowedFd<'_>) -> io::Result<()>;
    /// Anything that is no folder.
    fn file(&mut self, entry: &Entry<'_>) -> io::Result<()>;
    /// All that is in a folder below the top was visited.
    fn leave(&mut self, opened: BorrowedFd<'_>, stat: &Stat) -> io::Result<()>;
}

/// Visits all that is below `top`, an open folder. What disappears or becomes something else while
/// it is looked at is left out.
///
/// # Errors
/// Those of the visitor, and what the kernel says; `EAGAIN` when a folder deep in the tree was moved
/// while it was read, and `ENOBUFS` for more folders than anybody needs.
pub(crate) fn walk(top: BorrowedFd<'_>, visitor: &mut dyn Visit) -> io::Result<()> {
    let top = openat(top, ".", FOLDER, Mode::empty())?;
    let mut waiting = 0;
    let mut levels = vec![Level::read(&top, visitor, &mut waiting)?];
    let mut trail = Trail::new(top)?;
    let mut stats: Vec<Stat> = Vec::new();
    while let Some(level) = levels.last_mut() {
        if let Some(name) = level.folders.pop_front() {
            waiting -= 1;
            let Some((folder, stat)) = open_folder(trail.last(), &name)? else {
                continue;
            };
            let entry = Entry {
                folder: trail.last(),
                name: &name,
                stat: &stat,
            };
            visitor.enter(&entry, folder.as_fd())?;
            levels.push(Level::read(&folder, visitor, &mut waiting)?);
            trail.push(folder)?;
            stats.push(stat);
            continue;
        }
        levels.pop();
        if let Some(stat) = stats.pop() {
            visitor.leave(trail.last(), &stat)?;
            trail.pop()?;
        }
    }
    Ok(())
}

/// What is left of a folder that is being visited.
struct Level {
    folders: VecDeque<CString>,
}

impl Level {
    /// Visits the files of a folder, and notes its folders.
    fn read(folder: &OwnedFd, visitor: &mut dyn Visit, waiting: &mut usize) -> io::Result<Self> {
        let mut folders = VecDeque::new();
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let looked = if entry.file_type().is_dir() {
                Looked::Folder
            } else {
                look(folder, name)?
            };
            let folder = folder.as_fd();
            match looked {
                Looked::Gone => continue,
                Looked::File(stat) => {
                    let stat = &stat;
                    visitor.file(&Entry { folder, name, stat })?;
                    continue;
                }
                Looked::Folder => {}
            }
            *waiting += 1;
            if *waiting > WAITING_MAX {
                return Err(Errno::NOBUFS.into());
            }
            folders.push_back(name.to_owned());
        }
        Ok(Self { folders })
    }
}

enum Looked {
    Folder,
    File(Stat),
    Gone,
}

fn look(folder: &OwnedFd, name: &CStr) -> io::Result<Looked> {
    match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(Looked::Gone),
        stat => {
            let stat = stat?;
            Ok(if FileType::from_raw_mode(stat.st_mode).is_dir() {
                Looked::Folder
            } else {
                Looked::File(stat)
            })
        }
    }
}

/// `None` when it is gone, or no folder any more.
fn open_folder(at: BorrowedFd<'_>, name: &CStr) -> io::Result<Option<(OwnedFd, Stat)>> {
    let folder = match openat(at, name, FOLDER, Mode::empty()) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
        opened => opened?,
    };
    let stat = fstat(&folder)?;
    Ok(Some((folder, stat)))
}

/// The folders from a top down to where one stands. Only the last ones are held open.
#[derive(Debug)]
pub(crate) struct Trail {
    steps: Vec<Step>,
}

#[derive(Debug)]
struct Step {
    /// Absent: closed for now.
    folder: Option<OwnedFd>,
    device: u64,
    inode: u64,
}

impl Step {
    fn new(folder: OwnedFd) -> io::Result<Self> {
        let stat = fstat(&folder)?;
        Ok(Self {
            folder: Some(folder),
            device: stat.st_dev,
            inode: stat.st_ino,
        })
    }
}

impl Trail {
    pub(crate) fn new(top: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            steps: vec![Step::new(top)?],
        })
    }

    /// The folder one stands in.
    #[expect(
        clippy::expect_used,
        reason = "there is a last step, and `pop` opens it"
    )]
    pub(crate) fn last(&self) -> BorrowedFd<'_> {
        let last = self.steps.last().and_then(|step| step.folder.as_ref());
        last.expect("the last step is open").as_fd()
    }

    /// Steps into a folder of the last one.
    pub(crate) fn push(&mut self, folder: OwnedFd) -> io::Result<()> {
        self.steps.push(Step::new(folder)?);
        let closed = self.steps.len().checked_sub(OPEN_LEVELS_MAX + 1);
        if let Some(step) = closed.and_then(|at| self.steps.get_mut(at)) {
            step.folder = None;
        }
        Ok(())
    }

    /// Steps back up. The top is never left.
    ///
    /// # Errors
    /// `EAGAIN` when the folder above is not the one one came from.
    pub(crate) fn pop(&mut self) -> io::Result<()> {
        if self.steps.len() < 2 {
            return Ok(());
        }
        let left = self.steps.pop().and_then(|step| step.folder);
        let (Some(left), Some(above)) = (left, self.steps.last_mut()) else {
            return Ok(());
        };
        if above.folder.is_none() {
            let opened = Step::new(openat(&left, "..", FOLDER, Mode::empty())?)?;
            if (opened.device, opened.inode) != (above.device, above.inode) {
                return Err(Errno::AGAIN.into());
            }
            *above = opened;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[derive(Default)]
    struct Names {
        path: Vec<String>,
        seen: Vec<String>,
    }

    impl Visit for Names {
        fn enter(&mut self, entry: &Entry<'_>, _opened: BorrowedFd<'_>) -> io::Result<()> {
            self.path.push(entry.name.to_str().unwrap().to_owned());
            self.seen.push(format!("{}/", self.path.join("/")));
            Ok(())
        }

        fn file(&mut self, entry: &Entry<'_>) -> io::Result<()> {
            let name = entry.name.to_str().unwrap();
            let path: Vec<&str> = self.path.iter().map(String::as_str).chain([name]).collect();
            self.seen.push(path.join("/"));
            Ok(())
        }

        fn leave(&mut self, _opened: BorrowedFd<'_>, _stat: &Stat) -> io::Result<()> {
            self.path.pop();
            Ok(())
        }
    }

    fn names(top: &Path) -> Vec<String> {
        let top = rustix::fs::open(top, FOLDER, Mode::empty()).unwrap();
        let mut names = Names::default();
        walk(top.as_fd(), &mut names).unwrap();
        assert!(names.path.is_empty());
        names.seen.sort();
        names.seen
    }

    #[test]
    fn everything_is_visited_and_no_link_is_followed() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(place.path().join("outside/x")).unwrap();
        let top = place.path().join("top");
        std::fs::create_dir_all(top.join("a/b")).unwrap();
        std::fs::write(top.join("a/f"), "").unwrap();
        std::os::unix::fs::symlink("../../outside", top.join("a/l")).unwrap();
        assert_eq!(names(&top), ["a/", "a/b/", "a/f", "a/l"]);
    }

    #[test]
    fn a_tree_deeper_than_any_path_is_walked_with_few_descriptors() {
        let place = tempfile::tempdir().unwrap();
        let mut folder = rustix::fs::open(place.path(), FOLDER, Mode::empty()).unwrap();
        for _ in 0..3000 {
            rustix::fs::mkdirat(&folder, "d", Mode::RWXU).unwrap();
            rustix::fs::mkdirat(&folder, "e", Mode::RWXU).unwrap();
            folder = openat(&folder, "d", FOLDER, Mode::empty()).unwrap();
        }
        assert_eq!(names(place.path()).len(), 6000);
        box_runtime::erase::erase(&place.path().join("d")).unwrap();
    }
}
