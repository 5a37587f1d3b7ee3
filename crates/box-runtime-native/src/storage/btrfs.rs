//! Subvolumes of btrfs (`linux/btrfs.h`): folders that are copied, and removed, in one step.

use rustix::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, fstatfs, openat, statat};
use rustix::io::Errno;
use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::walk::FOLDER;

/// `BTRFS_SUPER_MAGIC` (linux/magic.h).
const MAGIC: u64 = 0x9123_683E;
/// Inode of the root of every subvolume (`BTRFS_FIRST_FREE_OBJECTID`).
const ROOT_INODE: u64 = 256;
/// `BTRFS_SUBVOL_NAME_MAX` and what is around it in `struct btrfs_ioctl_vol_args_v2`.
const NAME_BYTES: usize = 4040;
/// `BTRFS_PATH_NAME_MAX` of `struct btrfs_ioctl_vol_args`.
const PATH_BYTES: usize = 4088;

/// `struct btrfs_ioctl_vol_args`, 4096 bytes.
#[repr(C)]
struct Arguments {
    fd: i64,
    name: [u8; PATH_BYTES],
}

/// `struct btrfs_ioctl_vol_args_v2`, 4096 bytes.
#[repr(C)]
struct SnapshotArguments {
    fd: i64,
    transid: u64,
    flags: u64,
    unused: [u64; 4],
    name: [u8; NAME_BYTES],
}

// `_IOW(0x94, number, 4096 bytes)` of the requests below.
const SUBVOL_CREATE: libc::c_ulong = 0x5000_940E;
const SNAP_DESTROY: libc::c_ulong = 0x5000_940F;
const SNAP_CREATE_V2: libc::c_ulong = 0x5000_9417;

/// Whether a folder lies on btrfs.
pub(crate) fn holds(folder: BorrowedFd<'_>) -> io::Result<bool> {
    let magic = u64::try_from(fstatfs(folder)?.f_type).unwrap_or(0);
    Ok(magic == MAGIC)
}

/// Whether `name` in `folder` is a subvolume.
pub(crate) fn is_subvolume(folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<bool> {
    match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(stat.st_ino == ROOT_INODE && holds(folder)?),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Makes an empty subvolume.
pub(crate) fn create(folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    let arguments = Arguments {
        fd: 0,
        name: named(name)?,
    };
    // SAFETY: the request takes a `struct btrfs_ioctl_vol_args`, which lives across the call.
    request(unsafe { libc::ioctl(folder.as_raw_fd(), SUBVOL_CREATE, &raw const arguments) })
}

/// Makes `name` in `folder` a writable snapshot of the subvolume `of`, an open folder.
pub(crate) fn snapshot(of: BorrowedFd<'_>, folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    let arguments = SnapshotArguments {
        fd: i64::from(of.as_raw_fd()),
        transid: 0,
        flags: 0,
        unused: [0; 4],
        name: named(name)?,
    };
    // SAFETY: the request takes a `struct btrfs_ioctl_vol_args_v2`, which lives across the call,
    // and so does the descriptor in it.
    request(unsafe { libc::ioctl(folder.as_raw_fd(), SNAP_CREATE_V2, &raw const arguments) })
}

/// Removes a subvolume with all that is in it, but not where it holds other subvolumes.
pub(crate) fn destroy(folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    let arguments = Arguments {
        fd: 0,
        name: named(name)?,
    };
    // SAFETY: as in `create`.
    request(unsafe { libc::ioctl(folder.as_raw_fd(), SNAP_DESTROY, &raw const arguments) })
}

fn named<const N: usize>(name: &OsStr) -> io::Result<[u8; N]> {
    let bytes = CString::new(name.as_bytes())?.into_bytes_with_nul();
    let mut field = [0; N];
    let place = field.get_mut(..bytes.len());
    place.ok_or(Errno::NAMETOOLONG)?.copy_from_slice(&bytes);
    Ok(field)
}

fn request(result: libc::c_int) -> io::Result<()> {
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Opens the folder a path lies in.
pub(crate) fn folder_of(path: &Path) -> io::Result<(OwnedFd, &OsStr)> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Errno::INVAL.into());
    };
    Ok((
        openat(rustix::fs::CWD, parent, FOLDER, Mode::empty())?,
        name,
    ))
}
