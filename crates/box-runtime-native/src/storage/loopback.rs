//! A store of its own for machines whose disk cannot share content: btrfs in a sparse file of the
//! data folder, on a loop device.
//!
//! `<data>/store.btrfs` is the file, `<data>/store` where it is mounted. The mount outlives the
//! host, as boxes do.

use rustix::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, UnmountFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount, unmount,
};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Smallest store that is worth it; btrfs itself needs 109 MiB.
pub const SIZE_BYTES_MIN: u64 = 1 << 30;
/// Part of what is free that a store takes unless told.
const DEFAULT_SHARE: (u64, u64) = (3, 4);
const DEFAULT_BYTES_MAX: u64 = 256 << 30;
const FILE: &str = "store.btrfs";
/// A file being made; without its last name it is no store.
const BEING_MADE: &str = "store.btrfs.new";
const MOUNT: &str = "store";
const MKFS: &str = "mkfs.btrfs";

const LOOP_CONTROL: &str = "/dev/loop-control";
// `linux/loop.h`.
const LOOP_CONFIGURE: libc::c_ulong = 0x4C0A;
const LOOP_GET_STATUS64: libc::c_ulong = 0x4C05;
const LOOP_CTL_GET_FREE: libc::c_ulong = 0x4C82;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
const LO_FLAGS_DIRECT_IO: u32 = 16;
/// Others may take the free device between our two steps.
const TRIES_MAX: u32 = 32;

/// `struct loop_info64`.
#[repr(C)]
struct LoopInfo {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

impl Default for LoopInfo {
    fn default() -> Self {
        Self {
            device: 0,
            inode: 0,
            rdevice: 0,
            offset: 0,
            size_limit: 0,
            number: 0,
            encrypt_type: 0,
            encrypt_key_size: 0,
            flags: 0,
            file_name: [0; 64],
            crypt_name: [0; 64],
            encrypt_key: [0; 32],
            init: [0; 2],
        }
    }
}

/// `struct loop_config`.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

/// Why there is no such store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("only root can have a store on a loop device")]
    NotRoot,
    #[error("a store has at least {} bytes", SIZE_BYTES_MIN)]
    TooSmall,
    #[error("there are boxes in `{0}` already; a store is made before the first one")]
    BoxesThere(PathBuf),
    #[error("`{MKFS}` is not on this machine")]
    NoTool,
    #[error("could not {what}")]
    System {
        what: String,
        #[source]
        source: io::Error,
    },
}

impl StoreError {
    /// What the person can do now.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotRoot => Some("run it as root, or put the data folder on btrfs or XFS"),
            Self::TooSmall => Some("for example `--store btrfs=20GiB`"),
            Self::BoxesThere(_) => {
                Some("remove them with `box rm`, or give another folder with BOX_DATA_DIR")
            }
            Self::NoTool => Some("install the package `btrfs-progs`"),
            Self::System { .. } => None,
        }
    }
}

fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> StoreError {
    let what = what.into();
    move |source| StoreError::System { what, source }
}

/// Whether a store was made in this data folder.
pub fn is_made(data: &Path) -> bool {
    data.join(FILE).is_file()
}

/// Makes a store of `size_bytes` in the data folder, which no host works in. The file takes space
/// as it fills. Absent size: three quarters of what is free, 256 GiB at most.
///
/// # Errors
/// [`StoreError`] says what is in the way; nothing is left then.
pub fn make(data: &Path, size_bytes: Option<u64>) -> Result<u64, StoreError> {
    if !rustix::process::geteuid().is_root() {
        return Err(StoreError::NotRoot);
    }
    let boxes = data.join("boxes");
    if std::fs::read_dir(&boxes).is_ok_and(|mut boxes| boxes.next().is_some()) {
        return Err(StoreError::BoxesThere(boxes));
    }
    let size = match size_bytes {
        Some(size) => size,
        None => default_size(data).map_err(failed("see how much space is free"))?,
    };
    if size < SIZE_BYTES_MIN {
        return Err(StoreError::TooSmall);
    }
    let made = data.join(BEING_MADE);
    let result = format(&made, size).and_then(|()| {
        std::fs::rename(&made, data.join(FILE)).map_err(failed("name the store's file"))
    });
    if result.is_err() {
        // The first failure is the one worth telling.
        drop(std::fs::remove_file(&made));
    }
    result.map(|()| size)
}

fn default_size(data: &Path) -> io::Result<u64> {
    let about = rustix::fs::statvfs(data)?;
    let (part, whole) = DEFAULT_SHARE;
    Ok((about.f_bavail * about.f_frsize / whole * part).min(DEFAULT_BYTES_MAX))
}

fn format(file: &Path, size: u64) -> Result<(), StoreError> {
    let make = || -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
        let file = openat(CWD, file, flags, Mode::RUSR | Mode::WUSR)?;
        rustix::fs::ftruncate(&file, size)?;
        rustix::fs::fsync(&file)?;
        Ok(())
    };
    make().map_err(failed("make the store's file"))?;
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where this crate runs the tool that formats a store"
    )]
    let output = Command::new(MKFS)
        .args(["-q", "-L", "box"])
        .arg(file)
        .output();
    let output = match output {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(StoreError::NoTool),
        output => output.map_err(failed(format!("run `{MKFS}`")))?,
    };
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(failed(format!("format the store with `{MKFS}`"))(
        io::Error::other(said),
    ))
}

/// Where boxes lie: in the mounted store if one was made, which is mounted now unless it is, else
/// in the data folder itself.
///
/// # Errors
/// When there is a store and it cannot be mounted: boxes without it would not be found.
pub(crate) fn place(data: &Path) -> io::Result<PathBuf> {
    if !is_made(data) {
        return Ok(data.to_owned());
    }
    let point = data.join(MOUNT);
    if !is_mounted(data)? {
        crate::folders::private_folder(&point)?;
        mount(&data.join(FILE), &point)
            .map_err(|error| told(&error, "mount the store", &data.join(FILE)))?;
    }
    Ok(point)
}

fn told(error: &io::Error, what: &str, path: &Path) -> io::Error {
    let text = format!("could not {what} `{}`: {error}", path.display());
    io::Error::new(error.kind(), text)
}

/// Whether the store is mounted.
///
/// # Errors
/// When the data folder cannot be looked at.
pub fn is_mounted(data: &Path) -> io::Result<bool> {
    let device = |path: &Path| match rustix::fs::lstat(path) {
        Ok(stat) => Ok(Some(stat.st_dev)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(io::Error::from(errno)),
    };
    let inner = device(&data.join(MOUNT))?;
    Ok(inner.is_some() && inner != device(data)?)
}

/// Unmounts the store of a data folder no host works in; the device goes with it once no box runs
/// either. Not mounted: nothing to do.
///
/// # Errors
/// `EBUSY` while somebody looks at it.
pub fn unmount_store(data: &Path) -> io::Result<()> {
    while is_mounted(data)? {
        unmount(data.join(MOUNT), UnmountFlags::NOFOLLOW)?;
    }
    Ok(())
}

fn mount(file: &Path, point: &Path) -> io::Result<()> {
    let (device, name) = attach(file)?;
    let context = fsopen("btrfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(context.as_fd(), "source", name.as_str())?;
    // What is removed inside gives its space back to the machine.
    fsconfig_set_string(context.as_fd(), "discard", "async")?;
    fsconfig_create(context.as_fd())?;
    let mounted = fsmount(
        context.as_fd(),
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOATIME,
    )?;
    // The mount holds the device from here on.
    drop(device);
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    move_mount(&mounted, "", CWD, point, flags)?;
    Ok(())
}

/// A loop device over the file. It is free again when nobody holds it any more.
fn attach(file: &Path) -> io::Result<(OwnedFd, String)> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let file = openat(CWD, file, flags, Mode::empty())?;
    let control = openat(CWD, LOOP_CONTROL, flags, Mode::empty())?;
    // The device of an earlier mount lives on with the boxes in it, and btrfs has one only.
    if let Some(found) = attached(&file)? {
        return Ok(found);
    }
    for _ in 0..TRIES_MAX {
        // SAFETY: this request takes no argument.
        let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) };
        if number < 0 {
            return Err(io::Error::last_os_error());
        }
        let name = format!("/dev/loop{number}");
        let device = openat(CWD, &name, flags, Mode::empty())?;
        match configure(&device, &file) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
            result => return result.map(|()| (device, name)),
        }
    }
    Err(Errno::BUSY.into())
}

/// The loop device that has this file already.
fn attached(file: &OwnedFd) -> io::Result<Option<(OwnedFd, String)>> {
    let wanted = rustix::fs::fstat(file)?;
    for entry in std::fs::read_dir("/sys/block")? {
        let entry = entry?;
        if !entry.path().join("loop/backing_file").exists() {
            continue;
        }
        let name = format!("/dev/{}", entry.file_name().to_string_lossy());
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        let Ok(device) = openat(CWD, &name, flags, Mode::empty()) else {
            continue;
        };
        let mut info = LoopInfo::default();
        // SAFETY: the request writes a `struct loop_info64` to where it is told to.
        let status = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64, &raw mut info) };
        if status == 0 && (info.device, info.inode) == (wanted.st_dev, wanted.st_ino) {
            return Ok(Some((device, name)));
        }
    }
    Ok(None)
}

fn configure(device: &OwnedFd, file: &OwnedFd) -> io::Result<()> {
    let config = LoopConfig {
        fd: file.as_raw_fd().cast_unsigned(),
        block_size: 0,
        info: LoopInfo {
            flags: LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO,
            ..LoopInfo::default()
        },
        reserved: [0; 8],
    };
    // SAFETY: the request reads a `struct loop_config`, which lives across the call.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE, &raw const config) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
