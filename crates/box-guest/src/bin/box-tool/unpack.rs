//! `unpack`: what comes on standard input, put where the rules say.
//!
//! Whoever sends it is the box's owner, and whoever gets it runs as the box's user in the box: the
//! care taken here is that a copy ends beneath its target, whatever links lie there.

use crate::{Ended, say, told};
use box_copy::{FILE_ENTRY, Kind, Place, Slash, Source, There, place};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Timespec, Timestamps, fchmod, futimens,
    linkat, mkdirat, open, openat, openat2, renameat, statat, symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};
use tar::{Archive, Entry};

const BUFFER_BYTES: usize = 256 << 10;
const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);
const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);

/// Whether a folder is copied, or only what is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whole {
    Yes,
    ContentOnly,
}

/// For `box cp`. `name` is the last part of the source's path, empty when it has none.
pub(crate) fn stream(to: &Path, name: &str, whole: Whole) -> Ended {
    let mut input = BufReader::with_capacity(BUFFER_BYTES, io::stdin().lock());
    let mut first = [0];
    input
        .read_exact(&mut first)
        .map_err(|error| format!("nothing arrived: {error}"))?;
    let kind = Kind::parse(first[0]).ok_or("what arrived is no copy")?;
    let shown = to.display();
    let text = to.to_string_lossy();
    let source = Source {
        kind,
        name: Some(name).filter(|name| !name.is_empty()),
        content: whole == Whole::ContentOnly,
    };
    let failed = |what: &str| {
        let what = what.to_owned();
        move |error: Errno| format!("could not {what}: {error}")
    };
    let place = place(there(to), Slash::of(&text), source)
        .map_err(|error| format!("could not copy to `{shown}`: {error}"))?;
    let target = match place {
        Place::Itself => to.to_owned(),
        Place::Inside(name) => to.join(name),
        Place::Over => to.join("."),
    };
    match kind {
        Kind::Folder => {
            let folder = into_folder(&target)
                .map_err(failed(&format!("make the folder `{}`", target.display())))?;
            all(input, folder.as_fd(), &mut |_| true)
        }
        Kind::File => file(input, &target),
    }
}

/// For `box cp -`: any tar, below a folder that is there.
pub(crate) fn plain(to: &Path) -> Ended {
    let input = BufReader::with_capacity(BUFFER_BYTES, io::stdin().lock());
    let folder = open(to, FOLDER, Mode::empty())
        .map_err(|error| format!("could not open the folder `{}`: {error}", to.display()))?;
    all(input, folder.as_fd(), &mut |_| true)
}

fn there(to: &Path) -> There {
    match std::fs::metadata(to) {
        Ok(about) if about.is_dir() => There::Folder,
        Ok(_) => There::File,
        Err(_) => There::Nothing,
    }
}

fn into_folder(target: &Path) -> Result<OwnedFd, Errno> {
    match mkdirat(CWD, target, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error),
    }
    open(target, FOLDER, Mode::empty())
}

/// One file, beside its place first, so that whoever looks sees the old one or the new one.
fn file(input: impl Read, target: &Path) -> Ended {
    // A link is what it leads to: replacing it would leave that file as it was.
    let target = std::fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
    let shown = target.display();
    if target.is_dir() {
        return Err(format!("could not copy to `{shown}`: it is a folder"));
    }
    let parent = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    };
    let own = target.file_name().ok_or("the destination has no name")?;
    let parent = open(parent, FOLDER, Mode::empty())
        .map_err(|error| format!("could not open the folder of `{shown}`: {error}"))?;
    let folder = format!(".box-cp-{}", std::process::id());
    let in_folder = format!("could not write beside `{shown}`");
    mkdirat(&parent, &*folder, Mode::RWXU).map_err(|error| format!("{in_folder}: {error}"))?;
    let filled = (|| {
        let staging = openat(&parent, &*folder, FOLDER, Mode::empty())
            .map_err(|error| format!("{in_folder}: {error}"))?;
        let mut seen = 0;
        let done = all(input, staging.as_fd(), &mut |name| {
            seen += 1;
            name == Path::new(FILE_ENTRY) && seen == 1
        });
        let moved = done.and_then(|()| {
            renameat(&staging, FILE_ENTRY, &parent, own)
                .map_err(|error| format!("could not write `{shown}`: {error}"))
        });
        let _gone = unlinkat(&staging, FILE_ENTRY, AtFlags::empty());
        moved
    })();
    let _gone = unlinkat(&parent, &*folder, AtFlags::REMOVEDIR);
    filled
}

/// Every entry `wanted` lets in. Owners are the box's user, whatever the archive says.
fn all(input: impl Read, root: BorrowedFd<'_>, wanted: &mut dyn FnMut(&Path) -> bool) -> Ended {
    let mut archive = Archive::new(input);
    let mut folders: Vec<(PathBuf, Timestamps, Mode)> = Vec::new();
    let mut left_out = 0_u64;
    let entries = archive.entries().map_err(|error| told(&error))?;
    for entry in entries {
        let mut entry = entry.map_err(|error| format!("the archive is damaged: {error}"))?;
        let path = entry.path().map_err(|error| told(&error))?.into_owned();
        let Some(name) = clean(&path) else {
            return Err(format!(
                "entry `{}` leads out of the folder",
                path.display()
            ));
        };
        if !wanted(&name) {
            return Err(format!("entry `{}` has no place here", name.display()));
        }
        let times = times(&entry);
        let mode = Mode::from_raw_mode(entry.header().mode().unwrap_or(0o644) & 0o777);
        let kind = entry.header().entry_type();
        let written = if kind.is_dir() {
            folders.push((name.clone(), times.clone(), mode));
            folder_at(root, &name).map(drop).map_err(io::Error::from)
        } else if kind.is_file() || kind.is_contiguous() || kind.is_gnu_sparse() {
            regular(root, &name, &mut entry, (&times, mode))
        } else if kind.is_symlink() {
            link(root, &name, &entry, &times)
        } else if kind.is_hard_link() {
            hard_link(root, &name, &entry)
        } else {
            left_out += u64::from(!kind.is_pax_global_extensions());
            Ok(())
        };
        written.map_err(|error| format!("could not write `{}`: {error}", name.display()))?;
    }
    // The deepest first: a folder without a write bit would take nothing more.
    for (name, times, mode) in folders.iter().rev() {
        // Nobody is harmed by a folder that keeps its own mode, such as another user's.
        if let Ok(folder) = beneath(root, name) {
            let _mode = fchmod(&folder, *mode | Mode::RWXU);
            let _times = futimens(&folder, times);
        }
    }
    if left_out > 0 {
        say(&format!("{left_out} left out: no files, folders or links"));
    }
    Ok(())
}

/// A relative name without a way up; empty for the folder itself.
fn clean(path: &Path) -> Option<PathBuf> {
    let mut name = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(part) => name.push(part),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(name)
}

fn times<R: Read>(entry: &Entry<'_, R>) -> Timestamps {
    let time = Timespec {
        tv_sec: i64::try_from(entry.header().mtime().unwrap_or(0)).unwrap_or(0),
        tv_nsec: 0,
    };
    Timestamps {
        last_access: time,
        last_modification: time,
    }
}

fn regular<R: Read>(
    root: BorrowedFd<'_>,
    name: &Path,
    entry: &mut Entry<'_, R>,
    (times, mode): (&Timestamps, Mode),
) -> io::Result<()> {
    let (parent, own) = split(root, name)?;
    make_way(&parent, own)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mut file = File::from(openat(&parent, own, flags, Mode::RUSR | Mode::WUSR)?);
    io::copy(entry, &mut file)?;
    fchmod(&file, mode)?;
    Ok(futimens(&file, times)?)
}

fn link<R: Read>(
    root: BorrowedFd<'_>,
    name: &Path,
    entry: &Entry<'_, R>,
    times: &Timestamps,
) -> io::Result<()> {
    let target = entry.link_name_bytes().unwrap_or_default();
    let (parent, own) = split(root, name)?;
    make_way(&parent, own)?;
    symlinkat(OsStr::from_bytes(&target), &parent, own)?;
    Ok(utimensat(&parent, own, times, AtFlags::SYMLINK_NOFOLLOW)?)
}

fn hard_link<R: Read>(root: BorrowedFd<'_>, name: &Path, entry: &Entry<'_, R>) -> io::Result<()> {
    let target = entry.link_name_bytes().unwrap_or_default();
    let target = clean(Path::new(OsStr::from_bytes(&target)))
        .ok_or_else(|| io::Error::other("it is a link to a file outside"))?;
    let (from, file) = split(root, &target)?;
    let (parent, own) = split(root, name)?;
    make_way(&parent, own)?;
    Ok(linkat(&from, file, &parent, own, AtFlags::empty())?)
}

/// The folder a name lies in, made if it is not there, and its last part.
fn split<'n>(root: BorrowedFd<'_>, name: &'n Path) -> io::Result<(OwnedFd, &'n OsStr)> {
    let own = name
        .file_name()
        .ok_or_else(|| io::Error::other("it has no name"))?;
    let parent = name.parent().unwrap_or(Path::new(""));
    Ok((folder_at(root, parent)?, own))
}

/// Whatever has the name goes, unless it is a folder.
fn make_way(parent: &OwnedFd, own: &OsStr) -> io::Result<()> {
    match unlinkat(parent, own, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A folder below the root, made part by part; links on the way are not followed.
fn folder_at(root: BorrowedFd<'_>, name: &Path) -> Result<OwnedFd, Errno> {
    match beneath(root, name) {
        Err(Errno::NOENT) => {}
        opened => return opened,
    }
    let mut folder = beneath(root, Path::new(""))?;
    for part in name.components() {
        let part = part.as_os_str();
        match mkdirat(&folder, part, Mode::from_raw_mode(0o755)) {
            Ok(()) => {}
            Err(Errno::EXIST) => {
                let there = statat(&folder, part, AtFlags::SYMLINK_NOFOLLOW)?;
                if FileType::from_raw_mode(there.st_mode) != FileType::Directory {
                    return Err(Errno::NOTDIR);
                }
            }
            Err(error) => return Err(error),
        }
        folder = openat2(&folder, part, FOLDER, Mode::empty(), BENEATH)?;
    }
    Ok(folder)
}

fn beneath(root: impl AsFd, name: &Path) -> Result<OwnedFd, Errno> {
    let name = if name.as_os_str().is_empty() {
        Path::new(".")
    } else {
        name
    };
    openat2(root, name, FOLDER, Mode::empty(), BENEATH)
}
