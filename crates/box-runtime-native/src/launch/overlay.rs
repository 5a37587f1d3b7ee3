//! The root of a box that may write to it: an overlay over the image, mounted from the host's side.
//!
//! From inside the box's user namespace the kernel would refuse `redirect_dir`, and renaming a
//! folder of the image would fail with EXDEV. The lower layer is the idmapped image; the upper one
//! holds the box's real ids, since an idmapped upper would be read-only (`reference/runtime.md` §6).

use super::trees::tree;
use crate::step::{Step as _, StepError};
use crate::sys::{self, Cloned};
use rustix::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use rustix::fs::{Dir, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount,
};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, socketpair};
use rustix::process::{WaitOptions, waitpid};
use std::io;

/// Mounts `upper` and `work` of `folder` over `image`, a detached mount. Gives a detached mount.
pub(super) fn mount(image: &OwnedFd, folder: &OwnedFd) -> Result<OwnedFd, StepError> {
    let lower = format!("/proc/self/fd/{}", image.as_raw_fd());
    let changes = format!("/proc/self/fd/{}", folder.as_raw_fd());
    match make(&lower, &changes) {
        // Before Linux 6.15 a layer had to hang in the caller's own mount namespace.
        Err(Errno::INVAL) => in_a_namespace_of_its_own(image, folder),
        result => result.step("mount the box's changes over the image (overlay)"),
    }
}

fn make(lower: &str, changes: &str) -> Result<OwnedFd, Errno> {
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let options = [
        ("source", "box".to_owned()),
        ("lowerdir", lower.to_owned()),
        ("upperdir", format!("{changes}/upper")),
        ("workdir", format!("{changes}/work")),
        // Folders of the image can be renamed.
        ("redirect_dir", "on".to_owned()),
        // A changed owner alone copies the data too: the upper layer is complete by itself.
        ("metacopy", "off".to_owned()),
    ];
    for (key, value) in options {
        fsconfig_set_string(context.as_fd(), key, value)?;
    }
    fsconfig_create(context.as_fd())?;
    fsmount(
        context.as_fd(),
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOSUID,
    )
}

/// A helper process mounts the layers where only it sees them, and hands the overlay out.
fn in_a_namespace_of_its_own(image: &OwnedFd, folder: &OwnedFd) -> Result<OwnedFd, StepError> {
    const STEP: &str = "mount the box's changes over the image (overlay, by a helper)";
    let flags = SocketFlags::CLOEXEC;
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).step(STEP)?;
    let changes = tree(folder, "").step(STEP)?;
    // SAFETY: the spawner is single-threaded from its first instruction to its last.
    match unsafe { sys::clone3(0, None) }.step(STEP)? {
        Cloned::Child => {
            let sent = helper(image, &changes).and_then(|overlay| {
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

fn helper(image: &OwnedFd, changes: &OwnedFd) -> io::Result<OwnedFd> {
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
    Ok(make("/proc", "/dev")?)
}

fn private_all() -> rustix::mount::MountPropagationFlags {
    rustix::mount::MountPropagationFlags::PRIVATE | rustix::mount::MountPropagationFlags::REC
}

/// See [`crate::overlay_by_helper`].
pub(crate) fn overlay_by_helper(image: &OwnedFd, folder: &OwnedFd) -> io::Result<Vec<String>> {
    let told = |error: StepError| io::Error::other(error.to_string());
    let root = in_a_namespace_of_its_own(&tree(image, "")?, folder).map_err(told)?;
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
