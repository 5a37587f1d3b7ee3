//! What the box will see of the host, as mounts that hang nowhere yet.
//!
//! Opened before the box exists; once its ids are mapped each is shown with them, so that files on
//! disk hold ids 0–65535 whatever range the box has.

use super::environment::user_id;
use super::{nested, overlay};
use crate::rootless::Privileges;
use crate::spawner::wire::{Shown, Start};
use crate::step::{Step as _, StepError};
use crate::storage::identity::machine_id;
use crate::sys;
use box_api::control::Profile;
use box_runtime::Nesting;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{self, FileType, Mode, OFlags};
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
pub(super) const ETC_FILES: [&str; 4] = ["resolv.conf", "hosts", "hostname", "machine-id"];
/// The machine's devices a box has, with their numbers (Documentation/admin-guide/devices.txt of the
/// kernel).
pub(super) const DEVICES: [(&str, u32, u32); 6] = [
    ("null", 1, 3),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
    ("tty", 5, 0),
];
const DEVICE: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_RDONLY
    .union(MountAttrFlags::MOUNT_ATTR_NOSUID)
    .union(MountAttrFlags::MOUNT_ATTR_NOEXEC);
const INODES_MIN: u64 = 16 << 10;
/// One inode for so many bytes; source trees have smaller files than that, caches larger ones.
const BYTES_PER_INODE: u64 = 4 << 10;

const ARRIVE: &str = "take what the box is shown";

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
    /// The machine's [`DEVICES`], where the kernel lets us make no nodes.
    pub(super) devices: Vec<OwnedFd>,
    privileges: Privileges,
}

impl Trees {
    pub(super) fn open(start: &Start, privileges: Privileges) -> Result<Self, StepError> {
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
            scratch: scratch(start, privileges).step("make the box's tmpfs")?,
            devices: devices(privileges).step("open the machine's devices")?,
            privileges,
        })
    }

    /// As they travel to a first process that is there already; see [`Self::arrived`].
    pub(super) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let Self {
            image,
            workspace,
            home,
            programs,
            mounts,
            files,
            scratch,
            devices,
            privileges: _,
        } = self;
        let fixed = [image, workspace, home, programs, scratch];
        let lists = mounts.iter().chain(files).chain(devices);
        fixed.into_iter().chain(lists).map(AsFd::as_fd).collect()
    }

    /// The reverse of [`Self::descriptors`].
    pub(super) fn arrived(
        descriptors: Vec<OwnedFd>,
        start: &Start,
        privileges: Privileges,
    ) -> Result<Self, StepError> {
        let mut descriptors = descriptors.into_iter();
        let mut next = || descriptors.next().ok_or(Errno::BADMSG).step(ARRIVE);
        let fixed = [next()?, next()?, next()?, next()?, next()?];
        let [image, workspace, home, programs, scratch] = fixed;
        let mut list = |count: usize| (0..count).map(|_| next()).collect::<Result<Vec<_>, _>>();
        let (mounts, files) = (list(start.mounts.len())?, list(start.files.len())?);
        Ok(Self {
            image,
            workspace,
            home,
            programs,
            mounts,
            files,
            scratch,
            devices: descriptors.collect(),
            privileges,
        })
    }

    /// Shows everything with the box's ids. Gives the root of a box that may write to it.
    pub(super) fn finish(
        &self,
        start: &Start,
        ids: &OwnedFd,
    ) -> Result<Option<OwnedFd>, StepError> {
        let ids = self.privileges.maps_mounts().then(|| ids.as_fd());
        let set = |tree: &OwnedFd, attributes, what: &'static str| {
            sys::mount_setattr(tree, attributes, ids)
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
            Profile::Root => {
                let (folder, offset) = (&start.given.folder, start.id_offset);
                overlay::mount(&self.image, folder, self.privileges, offset).map(Some)
            }
        }
    }
}

/// Packs and placed files may lie on a file system that cannot map ids; they are readable by all.
fn sealed(tree: &OwnedFd, ids: Option<BorrowedFd<'_>>) -> io::Result<()> {
    match sys::mount_setattr(tree, SEALED, ids) {
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

/// The machine's own nodes, where the box can have none of its own.
fn devices(privileges: Privileges) -> io::Result<Vec<OwnedFd>> {
    let open = |(name, ..): (&str, u32, u32)| {
        let device = tree(fs::CWD, &format!("/dev/{name}"))?;
        sys::mount_setattr(&device, DEVICE, None)?;
        Ok(device)
    };
    match privileges {
        Privileges::Root => Ok(Vec::new()),
        Privileges::Ranges | Privileges::SingleUid { .. } => {
            DEVICES.into_iter().map(open).collect()
        }
    }
}

fn scratch(start: &Start, privileges: Privileges) -> io::Result<OwnedFd> {
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
    fill(&scratch, start, privileges)?;
    Ok(scratch)
}

fn fill(scratch: &OwnedFd, start: &Start, privileges: Privileges) -> io::Result<()> {
    let (user, group) = privileges.outside(start.id_offset, user_id(start.profile));
    for (name, mode) in [
        ("tmp", 0o1777),
        ("shm", 0o1777),
        ("run", 0o755),
        ("empty", 0o555),
    ] {
        folder(scratch, name, mode)?;
        fs::chownat(scratch, name, Some(user), Some(group), fs::AtFlags::empty())?;
    }
    if start.nesting == Nesting::Allowed {
        for name in nested::SYS {
            folder(scratch, name, 0o755)?;
        }
    }
    folder(scratch, "dev", 0o755)?;
    fill_dev(scratch, privileges)?;
    folder(scratch, "opt", 0o755)?;
    fill_opt(scratch, start)?;
    folder(scratch, "etc", 0o755)?;
    fill_etc(scratch, start)
}

/// Nodes of the box's own: the mount is read-only and without setuid, and nobody in the box owns
/// them. Only root makes nodes that work (mknod(2), `user_namespaces(7)`); else there is a file for the
/// machine's own to be shown at.
fn fill_dev(scratch: &OwnedFd, privileges: Privileges) -> io::Result<()> {
    let kind = match privileges {
        Privileges::Root => FileType::CharacterDevice,
        Privileges::Ranges | Privileges::SingleUid { .. } => FileType::RegularFile,
    };
    for (name, major, minor) in DEVICES {
        fs::mknodat(
            scratch,
            format!("dev/{name}"),
            kind,
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
fn fill_etc(scratch: &OwnedFd, start: &Start) -> io::Result<()> {
    let host_name = &start.host_name;
    let hosts = format!(
        "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n127.0.1.1 {host_name}\n"
    );
    let resolver = format!("nameserver {}\n", crate::network::SERVED_AT);
    let machine_id = machine_id(&start.id);
    let texts = [
        resolver,
        hosts,
        format!("{host_name}\n"),
        format!("{machine_id}\n"),
    ];
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
