//! The change to the box's own root, after which no path leads to the host.

use super::places::{attach, subtree};
use super::trees::ETC_FILES;
use super::{nested, proc};
use crate::step::{Step as _, StepError};
use box_runtime::Nesting;
use rustix::fd::OwnedFd;
use rustix::fs::CWD;
use rustix::mount::{MountAttrFlags, MoveMountFlags, UnmountFlags, move_mount, unmount};

const PLAIN: MountAttrFlags =
    MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);
const SEALED: MountAttrFlags = PLAIN.union(MountAttrFlags::MOUNT_ATTR_RDONLY);
/// The one place with device nodes: neither writable nor executable.
const DEVICES: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_RDONLY
    .union(MountAttrFlags::MOUNT_ATTR_NOSUID)
    .union(MountAttrFlags::MOUNT_ATTR_NOEXEC);

/// Mounts made while the host's tree is still in sight: the kernel mounts a `/proc` in a user
/// namespace only where a whole one can be seen (`mount_too_revealing`), and copies parts of a file
/// system only where that hangs in the caller's own mount namespace.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) proc: OwnedFd,
    pub(super) dev: OwnedFd,
    pub(super) shm: OwnedFd,
    pub(super) tmp: OwnedFd,
    pub(super) run: OwnedFd,
    pub(super) opt: OwnedFd,
    /// A folder without anything in it.
    pub(super) empty: OwnedFd,
    /// A file without anything in it.
    pub(super) null: OwnedFd,
    pub(super) etc: [OwnedFd; ETC_FILES.len()],
    /// Of a box that may hold containers.
    pub(super) sys: Option<OwnedFd>,
}

impl Parts {
    pub(super) fn open(scratch: &OwnedFd, nesting: Nesting) -> Result<Self, StepError> {
        let proc = proc::mount()?;
        // Any folder of the host does; the whole tree goes away with the change of root.
        move_mount(
            scratch,
            "",
            CWD,
            "/proc",
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH,
        )
        .step("attach the box's tmpfs")?;
        let part = |name: &str, attributes| {
            subtree(scratch, name, attributes)
                .step_with(|| format!("open `{name}` of the box's tmpfs"))
        };
        let [resolver, hosts, host_name, machine_id] = ETC_FILES;
        let sys = match nesting {
            Nesting::Refused => None,
            Nesting::Allowed => Some(part(nested::SYS[0], SEALED)?),
        };
        Ok(Self {
            proc,
            dev: part("dev", DEVICES)?,
            shm: part("shm", PLAIN)?,
            tmp: part("tmp", PLAIN)?,
            run: part("run", PLAIN)?,
            opt: part("opt", SEALED)?,
            empty: part("empty", SEALED)?,
            null: part("dev/null", DEVICES)?,
            etc: [
                part(&format!("etc/{resolver}"), SEALED)?,
                part(&format!("etc/{hosts}"), SEALED)?,
                part(&format!("etc/{host_name}"), SEALED)?,
                part(&format!("etc/{machine_id}"), SEALED)?,
            ],
            sys,
        })
    }
}

/// Makes `image` the root of everything, and lets go of the host's tree (`pivot_root(2)`, "NOTES").
pub(super) fn change_to(image: &OwnedFd) -> Result<(), StepError> {
    const STEP: &str = "change to the box's root";
    attach(image, CWD, "/").step(STEP)?;
    rustix::process::fchdir(image).step(STEP)?;
    rustix::process::pivot_root(".", ".").step(STEP)?;
    unmount(".", UnmountFlags::DETACH).step("let go of the host's files")?;
    rustix::process::chdir("/").step(STEP)
}
