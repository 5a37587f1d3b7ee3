//! Removes a tree that a box or an archive has written.
//!
//! Both can nest folders deeper than a stack is high and than any path is long, so nothing here
//! recurses or follows a path: a folder that is not empty is moved up to the top and taken later.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Removes the folder at `path` and all that is in it. Nothing there: nothing to do.
///
/// # Errors
/// What the file system said; what is left can be erased later.
pub fn erase(path: &Path) -> io::Result<()> {
    erase_at(rustix::fs::CWD, path)
}

/// As [`erase`], for the folder `name` in an open one. A link of that name is not followed.
///
/// # Errors
/// As those of [`erase`].
pub fn erase_at(folder: BorrowedFd<'_>, name: &Path) -> io::Result<()> {
    let top = match rustix::fs::openat(folder, name, FOLDER, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        result => result?,
    };
    let mut moved = 0u64;
    // Each round empties the folders that were at the top when it began, and moves up what was in
    // them; a tree has as many rounds as levels.
    loop {
        let names = folders_in(&top)?;
        if names.is_empty() {
            break;
        }
        for name in &names {
            empty(&top, name, &mut moved)?;
            rustix::fs::unlinkat(&top, name, AtFlags::REMOVEDIR)?;
        }
    }
    drop(top);
    match rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Names of the folders in `folder`, whose other entries are removed.
fn folders_in(folder: &OwnedFd) -> io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        if is_folder(folder, name, entry.file_type())? {
            names.push(name.to_owned());
        } else {
            rustix::fs::unlinkat(folder, name, AtFlags::empty())?;
        }
    }
    Ok(names)
}

/// Removes the files of the folder `name`, and moves its folders to `top` under names of their own.
fn empty(top: &OwnedFd, name: &CStr, moved: &mut u64) -> io::Result<()> {
    let folder = rustix::fs::openat(top, name, FOLDER, Mode::empty())?;
    for inner in folders_in(&folder)? {
        match rustix::fs::unlinkat(&folder, &inner, AtFlags::REMOVEDIR) {
            Ok(()) => continue,
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        loop {
            *moved += 1;
            let place = format!("erase-{moved}");
            let flags = RenameFlags::NOREPLACE;
            match rustix::fs::renameat_with(&folder, &inner, top, &place, flags) {
                Ok(()) => break,
                Err(Errno::EXIST) => {}
                // A subvolume of btrfs, which only a host makes: they are not nested without end.
                Err(Errno::XDEV) => {
                    erase_at(
                        folder.as_fd(),
                        Path::new(OsStr::from_bytes(inner.to_bytes())),
                    )?;
                    break;
                }
                Err(errno) => return Err(errno.into()),
            }
        }
    }
    Ok(())
}

fn is_folder(folder: impl AsFd, name: &CStr, kind: FileType) -> io::Result<bool> {
    if kind != FileType::Unknown {
        return Ok(kind == FileType::Directory);
    }
    let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_deeper_than_any_path_is_removed() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("kept"), "x").unwrap();
        let place = tempfile::tempdir().unwrap();
        let top = place.path().join("top");
        std::fs::create_dir(&top).unwrap();
        let mut folder = rustix::fs::open(&top, FOLDER, Mode::empty()).unwrap();
        for _ in 0..3000 {
            rustix::fs::mkdirat(&folder, "d", Mode::RWXU).unwrap();
            rustix::fs::symlinkat(outside.path(), &folder, "link").unwrap();
            folder = rustix::fs::openat(&folder, "d", FOLDER, Mode::empty()).unwrap();
        }
        erase(&top).unwrap();
        assert!(!top.exists());
        assert!(
            outside.path().join("kept").exists(),
            "links are not followed"
        );
        erase(&top).unwrap();
    }

    #[test]
    fn names_that_look_like_ours_do_no_harm() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().join("top");
        for name in ["a/b/c", "erase-1/x/y", "erase-2", "a/erase-1/z"] {
            std::fs::create_dir_all(top.join(name)).unwrap();
        }
        erase(&top).unwrap();
        assert!(!top.exists());
    }
}
