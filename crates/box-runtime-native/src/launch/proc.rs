//! `/proc` of a box, with the parts hidden and fixed that the OCI runtime spec's defaults name.

use super::places::{attach, subtree};
use super::root::Parts;
use crate::step::{Step as _, StepError};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// Shown as empty files. What a kernel does not have is skipped. `/sys` is not mounted at all:
/// Node, Python and git do without, and it costs 0.3 ms a start.
const HIDDEN_FILES: [&str; 7] = [
    "kcore",
    "keys",
    "latency_stats",
    "timer_list",
    "timer_stats",
    "sched_debug",
    "interrupts",
];
/// Shown as empty folders.
const HIDDEN_FOLDERS: [&str; 3] = ["acpi", "asound", "scsi"];
/// Shown, but not to be changed: uid 0 of a box owns the network part of `sys`.
const FIXED: [&str; 5] = ["bus", "fs", "irq", "sys", "sysrq-trigger"];

const ATTRIBUTES: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID
    .union(MountAttrFlags::MOUNT_ATTR_NODEV)
    .union(MountAttrFlags::MOUNT_ATTR_NOEXEC);

/// A `/proc` of the calling process's pid namespace.
pub(super) fn mount() -> Result<OwnedFd, StepError> {
    let mount = || {
        let context = fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(context.as_fd())?;
        fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, ATTRIBUTES)
    };
    // EPERM in a container whose own /proc is partly hidden: the kernel shows no more of it.
    mount().map_err(|errno: Errno| StepError::new("mount the box's /proc", errno))
}

/// Hides and fixes parts of `/proc`, which is attached by now.
pub(super) fn restrict(parts: &Parts) -> Result<(), StepError> {
    let proc = &parts.proc;
    for (names, cover) in [
        (&HIDDEN_FILES[..], &parts.null),
        (&HIDDEN_FOLDERS[..], &parts.empty),
    ] {
        let there: Vec<&&str> = names.iter().filter(|name| is_there(proc, name)).collect();
        for (at, name) in there.iter().enumerate() {
            // The first is the cover itself, the others are copies of it where it is by now: before
            // Linux 6.15 only what hangs in the caller's mount namespace was copied.
            let hide = || match at {
                0 => attach(cover, proc, name),
                _ => attach(
                    &subtree(proc, there[0], MountAttrFlags::empty())?,
                    proc,
                    name,
                ),
            };
            hide().step_with(|| format!("hide `/proc/{name}`"))?;
        }
    }
    for name in FIXED.iter().filter(|name| is_there(proc, name)) {
        let fixed = ATTRIBUTES | MountAttrFlags::MOUNT_ATTR_RDONLY;
        let fix = || attach(&subtree(proc, name, fixed)?, proc, name);
        fix().step_with(|| format!("make `/proc/{name}` read-only"))?;
    }
    Ok(())
}

/// Bounds what all the box's shared memory (System V) takes together, which no limit of a process
/// does. Belongs to uid 0 of the box's user namespace (Linux 5.19); where that is nobody it stays as it
/// is, and limits are best effort in any case.
pub(super) fn limit_shared_memory(proc: &OwnedFd, bytes: u64) {
    const SETTING: &str = "sys/kernel/shmall";
    let pages = bytes / rustix::param::page_size() as u64;
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let set = rustix::fs::openat(proc, SETTING, flags, Mode::empty())
        .and_then(|setting| rustix::io::write(&setting, pages.to_string().as_bytes()));
    let _ = set;
}

fn is_there(proc: &OwnedFd, name: &str) -> bool {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::openat(proc, name, flags, Mode::empty()).is_ok()
}
