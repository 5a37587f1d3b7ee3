//! What a file is besides its content: owner, extended attributes, mode, times.

use super::walk::Entry;
use rustix::fd::{AsFd, AsRawFd as _, BorrowedFd};
use rustix::fs::{
    AtFlags, Gid, Mode, Stat, Timespec, Timestamps, Uid, XattrFlags, chownat, fchmod, fchown,
    fgetxattr, flistxattr, fsetxattr, futimens, lgetxattr, llistxattr, lsetxattr, utimensat,
};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// Longest list of names and longest value the kernel gives (xattr(7)).
const XATTR_BYTES_MAX: usize = 64 << 10;

/// Extended attributes by name: overlay's notes, capabilities, access lists, whatever there is.
pub(crate) type Xattrs = Vec<(CString, Vec<u8>)>;

/// Reads the extended attributes of an open file or folder.
pub(crate) fn xattrs(of: BorrowedFd<'_>) -> io::Result<Xattrs> {
    read(
        |names| flistxattr(of, names),
        |name, value| fgetxattr(of, name, value),
    )
}

/// Reads those of something that cannot be opened, such as a link.
pub(crate) fn xattrs_at(entry: &Entry<'_>) -> io::Result<Xattrs> {
    let path = way_to(entry.folder, entry.name);
    read(
        |names| llistxattr(&path, names),
        |name, value| lgetxattr(&path, name, value),
    )
}

/// A path to a name in an open folder. `/proc` leads to the very folder, wherever it lies.
fn way_to(folder: BorrowedFd<'_>, name: &CStr) -> PathBuf {
    let mut path = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    path.push(std::ffi::OsStr::from_bytes(name.to_bytes()));
    path
}

fn read(
    list: impl Fn(&mut [u8]) -> Result<usize, Errno>,
    get: impl Fn(&CStr, &mut [u8]) -> Result<usize, Errno>,
) -> io::Result<Xattrs> {
    let mut buffer = [0; 1024];
    let names = match list(&mut buffer) {
        Ok(0) | Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
        Ok(length) => buffer[..length].to_vec(),
        Err(Errno::RANGE) => {
            let mut large = vec![0; XATTR_BYTES_MAX];
            let length = list(&mut large)?;
            large.truncate(length);
            large
        }
        Err(errno) => return Err(errno.into()),
    };
    let mut found = Vec::new();
    for name in names.split_inclusive(|byte| *byte == 0) {
        let Ok(name) = CStr::from_bytes_with_nul(name) else {
            continue;
        };
        let mut value = vec![0; 256];
        let length = match get(name, &mut value) {
            Err(Errno::RANGE) => {
                value.resize(XATTR_BYTES_MAX, 0);
                get(name, &mut value)
            }
            length => length,
        };
        match length {
            Ok(length) => value.truncate(length),
            // Removed meanwhile.
            Err(Errno::NODATA) => continue,
            Err(errno) => return Err(errno.into()),
        }
        found.push((name.to_owned(), value));
    }
    Ok(found)
}

/// Gives an open file or folder what `stat` and `xattrs` say. The order matters: a change of owner
/// takes set-uid bits and capabilities away, and times come last of all.
pub(crate) fn dress(file: impl AsFd, stat: &Stat, xattrs: &Xattrs) -> io::Result<()> {
    let file = file.as_fd();
    fchown(
        file,
        Some(Uid::from_raw(stat.st_uid)),
        Some(Gid::from_raw(stat.st_gid)),
    )?;
    for (name, value) in xattrs {
        fsetxattr(file, name.as_c_str(), value, XattrFlags::empty())?;
    }
    fchmod(file, Mode::from_raw_mode(stat.st_mode))?;
    futimens(file, &times(stat))?;
    Ok(())
}

/// As [`dress`], for what cannot be opened. A link has no mode of its own.
pub(crate) fn dress_at(
    folder: BorrowedFd<'_>,
    name: &CStr,
    stat: &Stat,
    xattrs: &Xattrs,
) -> io::Result<()> {
    let link = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_symlink();
    chownat(
        folder,
        name,
        Some(Uid::from_raw(stat.st_uid)),
        Some(Gid::from_raw(stat.st_gid)),
        AtFlags::SYMLINK_NOFOLLOW,
    )?;
    if !xattrs.is_empty() {
        let path = way_to(folder, name);
        for (name, value) in xattrs {
            lsetxattr(&path, name.as_c_str(), value, XattrFlags::empty())?;
        }
    }
    if !link {
        let mode = Mode::from_raw_mode(stat.st_mode);
        rustix::fs::chmodat(folder, name, mode, AtFlags::empty())?;
    }
    utimensat(folder, name, &times(stat), AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(())
}

fn times(stat: &Stat) -> Timestamps {
    let spec = |seconds, nanoseconds: u64| Timespec {
        tv_sec: seconds,
        tv_nsec: nanoseconds.cast_signed(),
    };
    Timestamps {
        last_access: spec(stat.st_atime, stat.st_atime_nsec),
        last_modification: spec(stat.st_mtime, stat.st_mtime_nsec),
    }
}
