//! Where limits on memory, processes and CPU are held.

pub(crate) mod processes;
mod v1;
mod v2;

use crate::step::{Step as _, StepError};
use box_api::BoxId;
use box_api::control::Limits;
use box_runtime::Usage;
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

/// Whether a box is to stand still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Motion {
    Frozen,
    Thawed,
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

    /// Changes the limits of a box that runs.
    pub(crate) fn set(&self, id: &BoxId, limits: &Limits) -> Result<(), StepError> {
        match self {
            Self::V2(subtree) => subtree.set(id, limits),
            Self::V1(hierarchies) => hierarchies.set(id, limits),
            Self::BestEffort => Ok(()),
        }
    }

    /// Whether boxes can be frozen by their cgroup.
    pub(crate) fn freezes(&self) -> bool {
        match self {
            Self::V2(_) => true,
            Self::V1(hierarchies) => hierarchies.freezes(),
            Self::BestEffort => false,
        }
    }

    /// Asks the kernel to freeze or thaw a box. Frozen it is only once [`Self::motion`] says so.
    pub(crate) fn put(&self, id: &BoxId, motion: Motion) -> Result<(), StepError> {
        match self {
            Self::V2(subtree) => subtree.put(id, motion),
            Self::V1(hierarchies) => hierarchies.put(id, motion),
            Self::BestEffort => Err(StepError::new("freeze a box without cgroups", Errno::NOSYS)),
        }
    }

    /// Whether the box stands still now; `NOENT` when it has no cgroup.
    pub(crate) fn motion(&self, id: &BoxId) -> io::Result<Motion> {
        match self {
            Self::V2(subtree) => subtree.motion(id),
            Self::V1(hierarchies) => hierarchies.motion(id),
            Self::BestEffort => Err(Errno::NOENT.into()),
        }
    }

    /// What the box uses; `NOENT` when it has no cgroup.
    pub(crate) fn usage(&self, id: &BoxId) -> io::Result<Usage> {
        match self {
            Self::V2(subtree) => subtree.usage(id),
            Self::V1(hierarchies) => hierarchies.usage(id),
            Self::BestEffort => Err(Errno::NOENT.into()),
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

/// A small file of a cgroup.
fn read(folder: &Path, file: &str) -> io::Result<String> {
    std::fs::read_to_string(folder.join(file))
}

/// A file that holds one number.
fn number(folder: &Path, file: &str) -> io::Result<u64> {
    let text = read(folder, file)?;
    text.trim().parse().map_err(io::Error::other)
}

/// A number after its key in a file of lines `key value` (cgroups(7), "flat keyed"); 0 without it.
fn keyed(text: &str, key: &str) -> u64 {
    let value = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        (name == key).then(|| value.trim().parse().ok())?
    };
    text.lines().find_map(value).unwrap_or(0)
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
