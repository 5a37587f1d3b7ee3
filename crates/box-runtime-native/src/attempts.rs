//! What a box needs of the kernel, each thing tried for real.
//!
//! [`Attempt::make`] is for a process that ends afterwards: it forks, makes namespaces, loads filters.
//! Nothing of it stays. It is what an engine would do with the same privileges, so call
//! [`crate::rootless::enter`] first, as a host does.

use crate::launch::IDS;
use crate::network::{self, Namespace};
use crate::rootless::Privileges;
use crate::seccomp::Filters;
use crate::storage::method;
use crate::sys::{self, Cloned};
use box_api::control::Profile;
use box_api::snapshot::CopyMethod;
use box_runtime::{Nesting, Transparent};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, OpenTreeFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen, open_tree,
};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{WaitOptions, waitpid};
use std::fs;
use std::io;
use std::path::Path;

/// Any range of ids no user of a machine has.
const OFFSET: u32 = 2_000_000_000;
const NAMESPACES: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWTIME;

/// One thing that can be tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// All namespaces of a box at once, with its ids.
    Namespaces,
    /// A `/proc` of the box's own.
    Proc,
    /// Files of the data folder shown with other ids.
    Mounts,
    /// Changes over an image, for profile `root`.
    Overlay,
    /// The filter of system calls.
    Filter,
    /// One listener for every port of the box.
    Ports,
    /// The files `box-egress` gives up.
    Landlock,
    /// How copies of boxes are made in the data folder.
    Copies,
}

impl Attempt {
    pub const ALL: [Self; 8] = [
        Self::Namespaces,
        Self::Proc,
        Self::Mounts,
        Self::Overlay,
        Self::Filter,
        Self::Ports,
        Self::Landlock,
        Self::Copies,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Proc => "proc",
            Self::Mounts => "mounts",
            Self::Overlay => "overlay",
            Self::Filter => "filter",
            Self::Ports => "ports",
            Self::Landlock => "landlock",
            Self::Copies => "copies",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }

    /// Tries it; `folder` is an empty one on the file system of the data folder.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn make(self, folder: &Path) -> io::Result<Seen> {
        let privileges = Privileges::current()?;
        match self {
            Self::Namespaces => inside(privileges, || Ok(0)).map(|_| Seen::Works),
            Self::Proc => inside(privileges, || mount_proc().map(|()| 0)).map(|_| Seen::Works),
            Self::Filter => {
                let filters = Filters::new(privileges);
                let load = || {
                    rustix::thread::set_no_new_privs(true)?;
                    sys::seccomp(filters.of(Profile::Locked, Nesting::Refused)).map(|()| 0)
                };
                inside(privileges, load).map(|_| Seen::Works)
            }
            Self::Ports => match inside(privileges, open_network)? {
                ALL_PORTS => Ok(Seen::AllPorts),
                _ => Ok(Seen::TwoPorts),
            },
            Self::Mounts if !privileges.maps_mounts() => Ok(Seen::NotNeeded),
            Self::Mounts => show_with_other_ids(folder, privileges).map(|()| Seen::Works),
            Self::Overlay => mount_overlay(folder, privileges).map(|()| Seen::Works),
            Self::Landlock => landlock_version().map(Seen::Version),
            Self::Copies => method::probe(folder).map(Seen::Copies),
        }
    }
}

/// What came of an attempt that worked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seen {
    Works,
    /// With these privileges a box does without.
    NotNeeded,
    AllPorts,
    /// Only 80 and 443.
    TwoPorts,
    Version(u32),
    Copies(CopyMethod),
}

const ALL_PORTS: u8 = 1;
const TWO_PORTS: u8 = 2;

/// Does something as the first process of a box's namespaces and tells what it gave.
fn inside(privileges: Privileges, act: impl FnOnce() -> io::Result<u8>) -> io::Result<u8> {
    born(privileges, act, |_| Ok(()))
}

/// As [`inside`]; `beside` is done meanwhile outside, with the box's user namespace.
fn born(
    privileges: Privileges,
    act: impl FnOnce() -> io::Result<u8>,
    beside: impl FnOnce(OwnedFd) -> io::Result<()>,
) -> io::Result<u8> {
    let (wait, go) = pipe_with(PipeFlags::CLOEXEC)?;
    let (answer, tell) = pipe_with(PipeFlags::CLOEXEC)?;
    // SAFETY: who makes an attempt has one thread.
    match unsafe { sys::clone3(NAMESPACES, None) }? {
        Cloned::Child => {
            drop((go, answer));
            // Let go without its ids: the parent gave up and is told nothing.
            if !matches!(rustix::io::read(&wait, &mut [0; 1]), Ok(1)) {
                sys::exit_now(1);
            }
            let (code, errno) = match act() {
                Ok(code) => (code, 0),
                Err(error) => (0, error.raw_os_error().unwrap_or(libc::EIO)),
            };
            let [a, b, c, d] = errno.to_le_bytes();
            // Nobody to tell but the parent.
            let _ = rustix::io::write(&tell, &[code, a, b, c, d]);
            sys::exit_now(0)
        }
        Cloned::Parent { pid, .. } => {
            drop((wait, tell));
            let process = format!("/proc/{}", pid.as_raw_nonzero());
            let namespace = map(&process, privileges);
            let done = namespace.and_then(beside).and_then(|()| {
                rustix::io::write(&go, b"g")?;
                heard(&answer)
            });
            // Its reading end is closed, so it does not wait.
            drop(go);
            waitpid(Some(pid), WaitOptions::empty())?;
            done
        }
    }
}

/// Gives the namespace its ids and opens it.
fn map(process: &str, privileges: Privileges) -> io::Result<OwnedFd> {
    let [users, groups] = privileges.maps(OFFSET, Profile::Locked);
    if !privileges.has_ranges() {
        write(&format!("{process}/setgroups"), "deny")?;
    }
    write(&format!("{process}/gid_map"), &groups)?;
    write(&format!("{process}/uid_map"), &users)?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let namespace = rustix::fs::open(format!("{process}/ns/user"), flags, Mode::empty())?;
    Ok(namespace)
}

/// In one piece, as the kernel wants it.
fn write(path: &str, text: &str) -> io::Result<()> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, text.as_bytes())?;
    Ok(())
}

fn heard(answer: &OwnedFd) -> io::Result<u8> {
    let mut said = [0; 5];
    if rustix::io::read(answer, &mut said)? != said.len() {
        // Killed in the middle, as a filter kills.
        return Err(Errno::CONNRESET.into());
    }
    let [code, errno @ ..] = said;
    match i32::from_le_bytes(errno) {
        0 => Ok(code),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

fn mount_proc() -> io::Result<()> {
    let context = fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(context.as_fd())?;
    let flags = FsMountFlags::FSMOUNT_CLOEXEC;
    drop(fsmount(context.as_fd(), flags, MountAttrFlags::empty())?);
    Ok(())
}

fn open_network() -> io::Result<u8> {
    let opened = network::open(Namespace::Fresh);
    let opened = opened.map_err(|error| io::Error::other(error.to_string()))?;
    Ok(match opened.transparent {
        Transparent::AllPorts(_) => ALL_PORTS,
        Transparent::Two { .. } => TWO_PORTS,
    })
}

fn show_with_other_ids(folder: &Path, privileges: Privileges) -> io::Result<()> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let tree = open_tree(rustix::fs::CWD, folder, flags)?;
    let show = |ids: OwnedFd| sys::mount_setattr(&tree, MountAttrFlags::empty(), Some(ids.as_fd()));
    born(privileges, || Ok(0), show).map(|_| ())
}

fn mount_overlay(folder: &Path, privileges: Privileges) -> io::Result<()> {
    for layer in ["lower", "upper", "work"] {
        fs::create_dir(folder.join(layer))?;
    }
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, layer) in [
        ("lowerdir", "lower"),
        ("upperdir", "upper"),
        ("workdir", "work"),
    ] {
        fsconfig_set_string(context.as_fd(), key, folder.join(layer))?;
    }
    match privileges {
        Privileges::Root => fsconfig_set_string(context.as_fd(), "redirect_dir", "on")?,
        Privileges::Ranges | Privileges::SingleUid { .. } => {
            fsconfig_set_flag(context.as_fd(), "userxattr")?;
        }
    }
    fsconfig_create(context.as_fd())?;
    let flags = FsMountFlags::FSMOUNT_CLOEXEC;
    let mounted = fsmount(context.as_fd(), flags, MountAttrFlags::empty())?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
    // A file system that cannot be an upper layer gives a read-only overlay, and no error before.
    drop(rustix::fs::openat(&mounted, "written", flags, Mode::RUSR)?);
    Ok(())
}

/// `LANDLOCK_CREATE_RULESET_VERSION` of `landlock_create_ruleset(2)`.
fn landlock_version() -> io::Result<u32> {
    const VERSION: u32 = 1;
    let nothing = std::ptr::null::<u8>();
    // SAFETY: asks for a number; nothing is read or made.
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0_usize, VERSION) };
    u32::try_from(version).map_err(|_| io::Error::last_os_error())
}

// What is mapped is what a box gets.
const _: () = assert!(IDS == 65_536);
