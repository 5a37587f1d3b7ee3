//! What the box will see of the host, as mounts that hang nowhere yet.
//!
//! Opened before the box exists; once its ids are mapped each is shown with them, so that files on
//! disk hold ids 0–65535 whatever range the box has.

use super::environment::user_id;
use super::overlay;
use crate::spawner::wire::{Shown, Start};
use crate::step::{Step as _, StepError};
use crate::sys;
use box_api::control::Profile;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{self, FileType, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, OpenTreeFlags, fsconfig_create, fsconfig_set_string,
    fsmount, fsopen, open_tree,
};
use std::io;
use std::path::Path;

const SEALED: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_RDONLY
    .union(MountAttrFlags::MOUNT_ATTR_NOSUID)
    .union(MountAttrFlags::MOUNT_ATTR_NODEV);
const WRITABLE: MountAttrFlags =
    MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);

/// Where our own things lie in a box; the folder is one of the scratch file system.
pub(super) const OPT: &str = "/opt/box";
/// Names in the scratch file system.
pub(super) const ETC_FILES: [&str; 3] = ["resolv.conf", "hosts", "hostname"];
const INODES_MIN: u64 = 16 << 10;
/// One inode for so many bytes; source trees have smaller files than that, caches larger ones.
const BYTES_PER_INODE: u64 = 4 << 10;

/// Detached mounts.
#[derive(Debug)]
pub(super) struct Trees {
    pub(super) image: OwnedFd,
    pub(super) workspace: OwnedFd,
    pub(super) home: OwnedFd,
    pub(super) programs: OwnedFd,
    pub(super) mounts: Vec<OwnedFd>,
    pub(super) files: Vec<OwnedFd>,
    /// The one tmpfs of the box: `dev`, `tmp`, `run`, `shm`, `opt`, `etc`, `empty`. Each file
    /// system more costs every box kernel memory (`reference/runtime.md` §3).
    pub(super) scratch: OwnedFd,
}

impl Trees {
    pub(super) fn open(start: &Start) -> Result<Self, StepError> {
        let given = &start.given;
        let shown = |list: &[Shown]| -> Result<Vec<OwnedFd>, StepError> {
            let open = |shown: &Shown| {
                tree(&shown.source, "")
                    .step_with(|| format!("open what is shown at `{}`", shown.target))
            };
            list.iter().map(open).collect()
        };
        Ok(Self {
            image: tree(&given.image, "").step("open the image")?,
            workspace: tree(&given.folder, "workspace").step("open the workspace")?,
            home: tree(&given.folder, "home").step("open the home folder")?,
            programs: tree(&given.programs, "").step("open our own programs")?,
            mounts: shown(&start.mounts)?,
            files: shown(&start.files)?,
            scratch: scratch(start).step("make the box's tmpfs")?,
        })
    }

    /// Shows everything with the box's ids. Gives the root of a box that may write to it.
    pub(super) fn finish(
        &self,
        start: &Start,
        ids: &OwnedFd,
    ) -> Result<Option<OwnedFd>, StepError> {
        let set = |tree: &OwnedFd, attributes, what: &'static str| {
            sys::mount_setattr(tree, attributes, Some(ids.as_fd()))
                .step_with(|| format!("show {what} with the box's ids (idmapped mount)"))
        };
        set(&self.image, SEALED, "the image")?;
        set(&self.workspace, WRITABLE, "the workspace")?;
        set(&self.home, WRITABLE, "the home folder")?;
        set(&self.programs, SEALED, "our own programs")?;
        for tree in self.mounts.iter().chain(&self.files) {
            sealed(tree, ids).step("show a file of the host read-only")?;
        }
        match start.profile {
            Profile::Locked => Ok(None),
            Profile::Root => overlay::mount(&self.image, &start.given.folder).map(Some),
        }
    }
}

/// Packs and placed files may lie on a file system that cannot map ids; they are readable by all.
fn sealed(tree: &OwnedFd, ids: &OwnedFd) -> io::Result<()> {
    match sys::mount_setattr(tree, SEALED, Some(ids.as_fd())) {
        Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {
            sys::mount_setattr(tree, SEALED, None)
        }
        result => result,
    }
}

/// A detached copy of the mount at `name` below `folder`, or of `folder` itself. The last component
/// is not followed if it is a link.
pub(super) fn tree(folder: impl AsFd, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW
        | OpenTreeFlags::AT_EMPTY_PATH;
    open_tree(folder, name, flags)
}

fn scratch(start: &Start) -> io::Result<OwnedFd> {
    let inodes = (start.limits.tmp_bytes / BYTES_PER_INODE).max(INODES_MIN);
    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(context.as_fd(), "size", start.limits.tmp_bytes.to_string())?;
    fsconfig_set_string(context.as_fd(), "nr_inodes", inodes.to_string())?;
    fsconfig_set_string(context.as_fd(), "mode", "0755")?;
    fsconfig_create(context.as_fd())?;
    let scratch = fsmount(
        context.as_fd(),
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::MOUNT_ATTR_NOSUID,
    )?;
    fill(&scratch, start)?;
    Ok(scratch)
}

fn fill(scratch: &OwnedFd, start: &Start) -> io::Result<()> {
    let inside = |id: u32| {
        (
            Uid::from_raw(start.id_offset + id),
            Gid::from_raw(start.id_offset + id),
        )
    };
    let (user, group) = inside(user_id(start.profile));
    for (name, mode) in [
        ("tmp", 0o1777),
        ("shm", 0o1777),
        ("run", 0o755),
        ("empty", 0o555),
    ] {
        folder(scratch, name, mode)?;
        fs::chownat(scratch, name, Some(user), Some(group), fs::AtFlags::empty())?;
    }
    folder(scratch, "dev", 0o755)?;
    fill_dev(scratch)?;
    folder(scratch, "opt", 0o755)?;
    fill_opt(scratch, start)?;
    folder(scratch, "etc", 0o755)?;
    fill_etc(scratch, &start.host_name)
}

/// Nodes of the box's own: the mount is read-only and without setuid, and nobody in the box owns
/// them. Numbers: Documentation/admin-guide/devices.txt of the kernel.
fn fill_dev(scratch: &OwnedFd) -> io::Result<()> {
    let nodes = [
        ("null", 1, 3),
        ("zero", 1, 5),
        ("full", 1, 7),
        ("random", 1, 8),
        ("urandom", 1, 9),
        ("tty", 5, 0),
    ];
    for (name, major, minor) in nodes {
        fs::mknodat(
            scratch,
            format!("dev/{name}"),
            FileType::CharacterDevice,
            Mode::from_raw_mode(0o666),
            fs::makedev(major, minor),
        )?;
    }
    let links = [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
        ("ptmx", "pts/ptmx"),
    ];
    for (name, target) in links {
        fs::symlinkat(target, scratch, format!("dev/{name}"))?;
    }
    folder(scratch, "dev/pts", 0o755)?;
    folder(scratch, "dev/shm", 0o755)
}

/// The points below `/opt/box` that something is mounted on.
fn fill_opt(scratch: &OwnedFd, start: &Start) -> io::Result<()> {
    folder(scratch, "opt/bin", 0o755)?;
    folder(scratch, "opt/agents", 0o755)?;
    let below = |shown: &Shown| {
        let rest = shown.target.strip_prefix(OPT)?.strip_prefix('/')?;
        Some(format!("opt/{rest}"))
    };
    for point in start.mounts.iter().filter_map(below) {
        folders(scratch, Path::new(&point))?;
    }
    for point in start.files.iter().filter_map(below) {
        if let Some(parent) = Path::new(&point).parent() {
            folders(scratch, parent)?;
        }
        write(scratch, &point, "")?;
    }
    Ok(())
}

/// A resolver list without a search list: each entry of one would leak the name that was asked.
fn fill_etc(scratch: &OwnedFd, host_name: &str) -> io::Result<()> {
    let hosts = format!(
        "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n127.0.1.1 {host_name}\n"
    );
    let resolver = format!("nameserver {}\n", crate::network::SERVED_AT);
    let texts = [resolver, hosts, format!("{host_name}\n")];
    for (name, text) in ETC_FILES.iter().zip(texts) {
        write(scratch, &format!("etc/{name}"), &text)?;
    }
    Ok(())
}

fn folder(at: &OwnedFd, name: impl AsRef<Path>, mode: u32) -> io::Result<()> {
    match fs::mkdirat(at, name.as_ref(), Mode::from_raw_mode(mode)) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

fn folders(at: &OwnedFd, path: &Path) -> io::Result<()> {
    let mut so_far = std::path::PathBuf::new();
    for part in path.components() {
        so_far.push(part);
        folder(at, &so_far, 0o755)?;
    }
    Ok(())
}

fn write(at: &OwnedFd, name: &str, text: &str) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = fs::openat(at, name, flags, Mode::from_raw_mode(0o644))?;
    rustix::io::write(&file, text.as_bytes())?;
    Ok(())
}
