//! Puts everything where a box expects it, by [`within`], so that no link of the box leads out of it;
//! folders that matter may not be links at all, since a `root` box owns them.

use super::environment::user_id;
use super::proc;
use super::root::Parts;
use super::trees::{DEVICES, ETC_FILES, OPT, Trees, tree};
use super::{nested, trust, within};
use crate::rootless::Privileges;
use crate::spawner::wire::{Shown, Start};
use crate::step::{Step as _, StepError};
use crate::sys;
use box_api::control::Profile;
use box_runtime::Placing;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{self, CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount,
};
use std::io;
use std::path::Path;

const WORKSPACE: &str = "/workspace";
/// The group terminals belong to on every distribution.
const TTY_GROUP: &str = "5";

pub(super) struct Places<'a> {
    pub(super) start: &'a Start,
    pub(super) trees: &'a Trees,
    pub(super) parts: &'a Parts,
    pub(super) ids: Privileges,
}

impl Places<'_> {
    pub(super) fn fill(&self) -> Result<(), StepError> {
        let Self { parts, trees, .. } = *self;
        self.on_folder(&parts.dev, "/dev")?;
        for (device, (name, ..)) in trees.devices.iter().zip(DEVICES) {
            let attached = attach(device, &parts.dev, name);
            attached.step_with(|| format!("show the machine's `/dev/{name}`"))?;
        }
        let terminals = terminals(self.ids.has_ranges().then_some(TTY_GROUP))?;
        attach(&terminals, &parts.dev, "pts").step("attach the box's terminals")?;
        attach(&parts.shm, &parts.dev, "shm").step("attach the box's shared memory")?;
        self.on_folder(&parts.proc, "/proc")?;
        proc::restrict(parts)?;
        self.on_folder(&parts.tmp, "/tmp")?;
        self.on_folder(&parts.run, "/run")?;
        self.on_folder(&parts.opt, OPT)?;
        attach(&trees.programs, &parts.opt, "bin").step("attach our own programs")?;
        self.on_folder(&trees.workspace, WORKSPACE)?;
        self.on_folder(&trees.home, self.home())?;
        for (tree, shown) in trees.mounts.iter().zip(&self.start.mounts) {
            self.on_folder(tree, &shown.target)?;
        }
        for (tree, name) in parts.etc.iter().zip(ETC_FILES) {
            let target = format!("/etc/{name}");
            if !self.start.files.iter().any(|file| file.target == target) {
                on_file(tree, &target)?;
            }
        }
        for (tree, shown) in trees.files.iter().zip(&self.start.files) {
            self.place(tree, shown)?;
        }
        if let Some(sys) = &parts.sys {
            self.on_folder(sys, "/sys")?;
            nested::settle(self.ids);
        }
        Ok(())
    }

    fn place(&self, tree: &OwnedFd, shown: &Shown) -> Result<(), StepError> {
        let target = &shown.target;
        match (shown.placing, self.start.profile) {
            (Placing::Always, _) => on_file(tree, target),
            (Placing::WhereThere, Profile::Root) if in_a_folder(target) => on_file(tree, target),
            (Placing::WhereThere, _) | (Placing::Trusted, Profile::Locked) => {
                over_file(tree, target)
            }
            (Placing::Trusted, Profile::Root) => {
                trust::add(tree, target);
                Ok(())
            }
            (Placing::Copied, profile) => {
                let user = self.ids.has_ranges().then(|| user_id(profile));
                // A box whose disk is full is still one that starts.
                drop(trust::copy(tree, Path::new(target), user));
                Ok(())
            }
        }
    }

    fn home(&self) -> &'static str {
        match self.start.profile {
            Profile::Locked => "/home/agent",
            Profile::Root => "/root",
        }
    }

    /// Attaches a tree to a folder, which a writable root is given if it lacks it.
    fn on_folder(&self, tree: &OwnedFd, target: &str) -> Result<(), StepError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = || fs::openat2(CWD, target, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS);
        let point = match open() {
            Err(Errno::NOENT) if self.start.profile == Profile::Root => {
                within::folder(Path::new(target), 0o755, None).and_then(|_| open())
            }
            result => result,
        };
        point
            .and_then(|point| attach_to(tree, &point))
            .step_with(|| format!("mount on the folder `{target}` of the image"))
    }
}

/// Attaches a file over another, which is made where the box may write, or lies on its tmpfs.
fn on_file(tree: &OwnedFd, target: &str) -> Result<(), StepError> {
    let open = || within::open(Path::new(target), OFlags::PATH, 0);
    let point = match open() {
        Err(Errno::NOENT) => make_file(Path::new(target)).and_then(|()| open()),
        result => result,
    };
    point
        .and_then(|point| attach_to(tree, &point))
        .step_with(|| format!("put a file over `{target}` of the image"))
}

/// Whether there is nothing of this name yet, but a folder for it.
fn in_a_folder(target: &str) -> bool {
    let path = Path::new(target);
    let folder = OFlags::PATH | OFlags::DIRECTORY;
    let is_folder = |above: &Path| within::open(above, folder, 0).is_ok();
    path.parent().is_some_and(is_folder) && !within::is_there(path)
}

/// Attaches a file over another if the image has that. Two names of one file are one place.
fn over_file(tree: &OwnedFd, target: &str) -> Result<(), StepError> {
    let Ok(point) = within::open(Path::new(target), OFlags::PATH, 0) else {
        return Ok(());
    };
    let attached = || {
        let (there, ours) = (fs::fstat(&point)?, fs::fstat(tree)?);
        let is_file = FileType::from_raw_mode(there.st_mode) == FileType::RegularFile;
        let is_ours = (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino);
        if is_file && !is_ours {
            attach_to(tree, &point)
        } else {
            Ok(())
        }
    };
    attached().step_with(|| format!("put a file over `{target}` of the image"))
}

fn make_file(path: &Path) -> Result<(), Errno> {
    if let Some(parent) = path.parent() {
        within::folder(parent, 0o755, None)?;
    }
    within::open(path, OFlags::WRONLY | OFlags::CREATE, 0o644).map(drop)
}

/// A devpts of the box's own: its terminals are nobody else's.
fn terminals(group: Option<&str>) -> Result<OwnedFd, StepError> {
    let group = group.map(|group| ("gid", group));
    let mount = || {
        let context = fsopen("devpts", FsOpenFlags::FSOPEN_CLOEXEC)?;
        for (key, value) in [("mode", "0620"), ("ptmxmode", "0666")]
            .into_iter()
            .chain(group)
        {
            fsconfig_set_string(context.as_fd(), key, value)?;
        }
        fsconfig_create(context.as_fd())?;
        fsmount(
            context.as_fd(),
            FsMountFlags::FSMOUNT_CLOEXEC,
            MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC,
        )
    };
    mount().map_err(|errno: Errno| StepError::new("mount the box's terminals (devpts)", errno))
}

/// A detached copy of a part of an attached tree, with more attributes than that has.
pub(super) fn subtree(of: &OwnedFd, name: &str, attributes: MountAttrFlags) -> io::Result<OwnedFd> {
    let part = tree(of, name)?;
    if !attributes.is_empty() {
        sys::mount_setattr(&part, attributes, None)?;
    }
    Ok(part)
}

pub(super) fn attach(tree: &OwnedFd, folder: impl AsFd, name: &str) -> io::Result<()> {
    Ok(move_mount(
        tree,
        "",
        folder,
        name,
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH,
    )?)
}

fn attach_to(tree: &OwnedFd, point: &OwnedFd) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(tree, "", point, "", flags)
}
