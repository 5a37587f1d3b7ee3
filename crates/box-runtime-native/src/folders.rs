//! Where the engine keeps boxes.
//!
//! ```text
//! <data>/boxes/<id>/workspace   uid 1020 (`locked`) or 0 (`root`); ids 0–65535 on disk
//! <data>/boxes/<id>/home
//! <data>/boxes/<id>/upper       changes to the root of a `root` box, with the box's real ids
//! <data>/boxes/<id>/work        the overlay's own
//! <data>/tmp/                   where folders are born and die
//! <run>/boxes/<id>/guest.sock   box-guest listens here
//! <run>/boxes/<id>/record.json  who pid 1 of the box is; see `record`
//! ```

use crate::record::Record;
use box_api::BoxId;
use box_runtime::erase::erase;
use box_runtime::{Observed, unpack};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

pub(crate) const WORKSPACE: &str = "workspace";
pub(crate) const HOME: &str = "home";
pub(crate) const UPPER: &str = "upper";
pub(crate) const WORK: &str = "work";
/// Names of half-made and of removed boxes in `tmp/`.
pub(crate) const BEING_MADE: &str = "box";
pub(crate) const BEING_REMOVED: &str = "removed";

#[derive(Debug)]
pub(crate) struct Folders {
    boxes: PathBuf,
    running: PathBuf,
    pub(crate) tmp: PathBuf,
}

impl Folders {
    pub(crate) fn open(data: &Path, run: &Path) -> io::Result<Self> {
        let folders = Self {
            boxes: data.join("boxes"),
            running: run.join("boxes"),
            tmp: data.join("tmp"),
        };
        for folder in [&folders.boxes, &folders.running, &folders.tmp] {
            private_folder(folder)?;
        }
        unpack::clear(&folders.tmp, BEING_MADE)?;
        folders.erase_removed()?;
        Ok(folders)
    }

    /// Finishes removals that were cut short.
    fn erase_removed(&self) -> io::Result<()> {
        for entry in std::fs::read_dir(&self.tmp)? {
            let entry = entry?;
            let name = entry.file_name();
            if name
                .to_str()
                .is_some_and(|name| name.starts_with(BEING_REMOVED))
            {
                erase(&entry.path())?;
            }
        }
        Ok(())
    }

    pub(crate) fn of_box(&self, id: &BoxId) -> PathBuf {
        self.boxes.join(id.as_str())
    }

    /// The box's part of the run folder.
    pub(crate) fn of_running(&self, id: &BoxId) -> PathBuf {
        self.running.join(id.as_str())
    }

    pub(crate) fn has(&self, id: &BoxId) -> bool {
        self.of_box(id).is_dir()
    }

    /// The running box's first process; see [`Record::find`].
    pub(crate) fn first_process(&self, id: &BoxId) -> Option<(u32, OwnedFd)> {
        Record::read(&self.of_running(id))?.find()
    }

    /// Every box there is, and every one that runs though its files are gone.
    pub(crate) fn list(&self) -> io::Result<Vec<Observed>> {
        let mut ids: Vec<BoxId> = Vec::new();
        for folder in [&self.boxes, &self.running] {
            for entry in std::fs::read_dir(folder)? {
                let name = entry?.file_name();
                let id = name.to_str().and_then(|name| BoxId::parse(name).ok());
                ids.extend(id);
            }
        }
        ids.sort_unstable();
        ids.dedup();
        let observe = |id: BoxId| {
            let pid = self.first_process(&id).map(|(pid, _)| pid);
            Observed {
                id,
                running: pid.is_some(),
                pid,
            }
        };
        let observed = ids.into_iter().map(observe);
        Ok(observed
            .filter(|seen| seen.running || self.has(&seen.id))
            .collect())
    }
}

/// Makes a folder only its owner may enter, and the ones above it.
pub(crate) fn private_folder(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

/// A descriptor that names a folder or a file and lets nobody read or write through it.
pub(crate) fn path_only(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(
        path,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}
