//! Where limits on memory, processes and CPU are held.

mod v1;
mod v2;

use crate::step::{Step as _, StepError};
use box_api::BoxId;
use box_api::control::Limits;
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

/// How this machine lets us hold limits.
#[derive(Debug)]
pub(crate) enum Cgroups {
    V2(v2::Subtree),
    V1(v1::Hierarchies),
    /// Resource limits of the processes alone.
    BestEffort,
}

/// The cgroup of one box, and how a process gets into it.
#[derive(Debug)]
pub(crate) enum Place {
    /// A folder of cgroup v2, for `CLONE_INTO_CGROUP`.
    Into(OwnedFd),
    /// The `tasks` files of the controllers of v1, open for writing.
    Tasks(Vec<File>),
    Nowhere,
}

impl Cgroups {
    /// Looks what is there. On v2 the calling process moves into a leaf of its own, since a cgroup
    /// with controllers for its children may hold no process (cgroups(7), "no internal processes").
    pub(crate) fn find() -> Self {
        if let Some(subtree) = v2::Subtree::find() {
            return Self::V2(subtree);
        }
        v1::Hierarchies::find().map_or(Self::BestEffort, Self::V1)
    }

    /// As `box info` shows it.
    pub(crate) fn held_by(&self) -> &'static str {
        match self {
            Self::V2(_) => "cgroup v2",
            Self::V1(_) => "cgroup v1",
            Self::BestEffort => "best effort",
        }
    }

    /// Makes the cgroup of a box with its limits; what an earlier box of that id left is used.
    pub(crate) fn make(&self, id: &BoxId, limits: &Limits) -> Result<Place, StepError> {
        match self {
            Self::V2(subtree) => subtree.make(id, limits).map(Place::Into),
            Self::V1(hierarchies) => hierarchies.make(id, limits).map(Place::Tasks),
            Self::BestEffort => Ok(Place::Nowhere),
        }
    }

    /// Removes what [`Self::make`] made. The box's processes are dead or about to be.
    pub(crate) fn remove(&self, id: &BoxId) -> Result<(), StepError> {
        match self {
            Self::V2(subtree) => subtree.remove(id),
            Self::V1(hierarchies) => hierarchies.remove(id),
            Self::BestEffort => Ok(()),
        }
    }
}

impl Place {
    /// The folder to clone into.
    pub(crate) fn to_clone_into(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Into(folder) => Some(folder.as_fd()),
            Self::Tasks(_) | Self::Nowhere => None,
        }
    }

    /// Moves the calling process in, where clone3 could not. A thread that writes itself (`0`) into
    /// `tasks` spares the kernel the lock that makes any other attach wait 5 to 20 ms
    /// (`cgroup_procs_write_start` in kernel/cgroup/cgroup.c; `reference/runtime.md` §4).
    pub(crate) fn enter(&mut self) -> Result<(), StepError> {
        let Self::Tasks(files) = self else {
            return Ok(());
        };
        files
            .iter_mut()
            .try_for_each(|tasks| tasks.write_all(b"0"))
            .step("enter the box's cgroup")
    }
}

/// Writes a value into one file of a cgroup.
fn set(folder: &Path, file: &str, value: &str) -> io::Result<()> {
    let path = folder.join(file);
    let file = rustix::fs::open(&path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, value.as_bytes())?;
    Ok(())
}

fn make_folder(folder: &Path) -> Result<(), Errno> {
    match rustix::fs::mkdir(folder, Mode::from_raw_mode(0o755)) {
        Err(Errno::EXIST) => Ok(()),
        other => other,
    }
}

/// Removes an empty cgroup. The kernel says busy for a moment after its last process is gone.
fn remove_folder(folder: &Path) -> Result<(), Errno> {
    const TRIES: u32 = 200;
    const BETWEEN: Duration = Duration::from_millis(1);
    for _ in 0..TRIES {
        match rustix::fs::rmdir(folder) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            Err(Errno::BUSY) => std::thread::sleep(BETWEEN),
            Err(errno) => return Err(errno),
        }
    }
    Err(Errno::BUSY)
}
