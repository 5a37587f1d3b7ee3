//! The root of a box that may write to it: an overlay over the image, mounted from the host's side.
//!
//! From inside the box's user namespace the kernel would refuse `redirect_dir`, and renaming a
//! folder of the image would fail with EXDEV. Both layers are idmapped, so that the changes too hold
//! ids 0–65535 on disk. What the overlay makes for itself it makes as root of the machine, who has no
//! id in a box's range; without one it could not write. So the upper layer's map has one id more.

use super::IDS;
use super::trees::tree;
use crate::rootless::Privileges;
use crate::step::{Step as _, StepError};
use crate::storage::layout::OVERLAY_ID;
use crate::sys::{self, Cloned};
use rustix::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use rustix::fs::{Dir, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen, move_mount,
};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, socketpair};
use rustix::process::{
    Signal, WaitId, WaitIdOptions, WaitOptions, pidfd_send_signal, waitid, waitpid,
};
use rustix::thread::Timespec;
use std::io;

/// Mounts `upper` and `work` of `folder` over `image`, a detached mount, for the box whose range
/// begins at `offset`. Gives a detached mount.
pub(super) fn mount(
    image: &OwnedFd,
    folder: &OwnedFd,
    privileges: Privileges,
    offset: u32,
) -> Result<OwnedFd, StepError> {
    let notes = Notes::of(privileges);
    let changes = tree(folder, "").step("open the box's changes")?;
    if privileges.maps_mounts() {
        show_to_root_as_well(&changes, offset)
            .step("show the box's changes with its ids (idmapped mount)")?;
    }
    let path = |tree: &OwnedFd| format!("/proc/self/fd/{}", tree.as_raw_fd());
    match make(&path(image), &path(&changes), notes) {
        // Before Linux 6.15 a layer had to hang in the caller's own mount namespace.
        Err(Errno::INVAL) => in_a_namespace_of_its_own(image, &changes, notes),
        result => result.step("mount the box's changes over the image (overlay)"),
    }
}

/// Maps ids 0–65535 on disk to the box's range, and the one after them to root of the machine.
fn show_to_root_as_well(changes: &OwnedFd, offset: u32) -> io::Result<()> {
    let map = format!("0 {offset} {IDS}\n{OVERLAY_ID} 0 1\n");
    // SAFETY: the spawner is single-threaded from its first instruction to its last.
    match unsafe { sys::clone3(libc::CLONE_NEWUSER, None) }? {
        // Its namespace is all that is wanted of it.
        Cloned::Child => loop {
            let second = Timespec {
                tv_sec: 1,
                tv_nsec: 0,
            };
            // Cut short or not: it is killed.
            let _ = rustix::thread::nanosleep(&second);
        },
        Cloned::Parent { pid, pidfd } => {
            let process = format!("/proc/{}", pid.as_raw_nonzero());
            let ids = mapped(&process, &map);
            // Neither can fail for a child that was not reaped yet.
            let _ = pidfd_send_signal(&pidfd, Signal::KILL);
            let _ = waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED);
            sys::mount_setattr(changes, MountAttrFlags::empty(), Some(ids?.as_fd()))
        }
    }
}

/// Gives the user namespace of a process its ids, and opens it.
fn mapped(process: &str, map: &str) -> io::Result<OwnedFd> {
    for file in ["uid_map", "gid_map"] {
        let path = format!("{process}/{file}");
        let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
        rustix::io::write(&file, map.as_bytes())?;
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(
        format!("{process}/ns/user"),
        flags,
        Mode::empty(),
    )?)
}

/// Where the overlay notes what it must remember of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Notes {
    /// Extended attributes only root may set. A folder of the image can be renamed.
    Trusted,
    /// Attributes of the user's own. The kernel believes no redirection that stands in one, so that
    /// renaming a folder of the image gives EXDEV, as between file systems; `mv` then copies.
    User,
}

impl Notes {
    fn of(privileges: Privileges) -> Self {
        match privileges {
            Privileges::Root => Self::Trusted,
            Privileges::Ranges | Privileges::SingleUid { .. } => Self::User,
        }
    }
}

fn make(lower: &str, changes: &str, notes: Notes) -> Result<OwnedFd, Errno> {
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let options = [
        ("source", "box".to_owned()),
        ("lowerdir", lower.to_owned()),
        ("upperdir", format!("{changes}/upper")),
        ("workdir", format!("{changes}/work")),
        // A changed owner alone copies the data too: the upper layer is complete by itself.
        ("metacopy", "off".to_owned()),
    ];
    for (key, value) in options {
        fsconfig_set_string(context.as_fd(), key, value)?;
    }
    match notes {
        Notes::Trusted => fsconfig_set_string(context.as_fd(), "redirect_dir", "on")?,
        Notes::User => fsconfig_set_flag(context.as_fd(), "userxattr")?,
    }
    fsconfig_create(context.as_fd())?;
    fsmount(
        context.as_fd(),
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOSUID,
    )
}

/// A helper process mounts the layers where only it sees them, and hands the overlay out.
fn in_a_namespace_of_its_own(
    image: &OwnedFd,
    changes: &OwnedFd,
    notes: Notes,
) -> Result<OwnedFd, StepError> {
    const STEP: &str = "mount the box's changes over the image (overlay, by a helper)";
    let flags = SocketFlags::CLOEXEC;
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).step(STEP)?;
    // SAFETY: the spawner is single-threaded from its first instruction to its last.
    match unsafe { sys::clone3(0, None) }.step(STEP)? {
        Cloned::Child => {
            let sent = helper(image, changes, notes).and_then(|overlay| {
                Ok(crate::spawner::wire::send(
                    &theirs,
                    b"o",
                    &[overlay.as_fd()],
                )?)
            });
            sys::exit_now(sent.map_or_else(|error| error.raw_os_error().unwrap_or(1), |()| 0))
        }
        Cloned::Parent { pid, .. } => {
            drop(theirs);
            let received = crate::spawner::wire::receive(&ours, 16, RecvFlags::empty());
            let ended = waitpid(Some(pid), WaitOptions::empty()).step(STEP)?;
            let overlay = received.step(STEP)?.1.into_iter().next();
            overlay.ok_or_else(|| {
                let code = ended
                    .and_then(|(_, status)| status.exit_status())
                    .unwrap_or(1);
                StepError::new(STEP, Errno::from_raw_os_error(code))
            })
        }
    }
}

fn helper(image: &OwnedFd, changes: &OwnedFd, notes: Notes) -> io::Result<OwnedFd> {
    sys::new_mount_namespace()?;
    rustix::mount::mount_change("/", private_all())?;
    // Any two folders do; these are there on every machine, and only this process sees the change.
    for (tree, point) in [(image, "/proc"), (changes, "/dev")] {
        move_mount(
            tree,
            "",
            rustix::fs::CWD,
            point,
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH,
        )?;
    }
    Ok(make("/proc", "/dev", notes)?)
}

fn private_all() -> rustix::mount::MountPropagationFlags {
    rustix::mount::MountPropagationFlags::PRIVATE | rustix::mount::MountPropagationFlags::REC
}

/// See [`crate::overlay_by_helper`].
pub(crate) fn overlay_by_helper(image: &OwnedFd, folder: &OwnedFd) -> io::Result<Vec<String>> {
    let told = |error: StepError| io::Error::other(error.to_string());
    let (image, changes) = (tree(image, "")?, tree(folder, "")?);
    show_to_root_as_well(&changes, crate::spawner::wire::FIRST_ID)?;
    let root = in_a_namespace_of_its_own(&image, &changes, Notes::Trusted).map_err(told)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
    rustix::fs::openat(&root, "probe", flags, Mode::RWXU)?;
    let mut names = Vec::new();
    let readable = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::openat(&root, ".", readable, Mode::empty())?;
    for entry in Dir::read_from(&root)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    Ok(names)
}
