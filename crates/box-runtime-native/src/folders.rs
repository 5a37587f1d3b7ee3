//! Where the engine keeps boxes.
//!
//! ```text
//! <data>/store.btrfs            a file system of our own, where one was made; see `storage::loopback`
//! <store>                       <data>/store where that is mounted, else <data>
//! <store>/boxes/<id>/workspace  uid 1020 (`locked`) or 0 (`root`); ids 0–65535 on disk
//! <store>/boxes/<id>/home
//! <store>/boxes/<id>/upper      changes to the root of a `root` box; ids as the others
//! <store>/boxes/<id>/work       the overlay's own
//! <store>/snapshots/<id>        see `snapshots`
//! <store>/tmp/                  where folders are born and die
//! <run>/boxes/<id>/guest.sock   box-guest listens here
//! <run>/boxes/<id>/record.json  who pid 1 of the box is; see `record`
//! <run>/spares/<id>             a box was begun ahead under this id; see `pool`
//! ```
//!
//! On btrfs each folder of a box, and of a snapshot, is one subvolume.

use crate::record::Record;
use crate::snapshots::{BEING_CLONED, BEING_RESTORED, BEING_TAKEN};
use crate::storage::{self, loopback, method};
use crate::transfer::{BEING_EXPORTED, BEING_IMPORTED};
use box_api::BoxId;
use box_api::snapshot::{CopyMethod, Label};
use box_runtime::Observed;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, chmodat, mkdirat, renameat_with};
use rustix::io::Errno;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

pub(crate) use crate::storage::layout::{HOME, UPPER, WORK, WORKSPACE};

/// Names of half-made and of removed boxes in `tmp/`.
pub(crate) const BEING_MADE: &str = "box";
const BEING_REMOVED: &str = "removed";
/// What a crash may leave in `tmp/`.
const LEFT: [&str; 8] = [
    BEING_EXPORTED,
    BEING_IMPORTED,
    BEING_MADE,
    BEING_REMOVED,
    BEING_TAKEN,
    BEING_RESTORED,
    BEING_CLONED,
    method::TRIAL,
];

#[derive(Debug)]
pub(crate) struct Folders {
    boxes: PathBuf,
    running: PathBuf,
    spares: PathBuf,
    snapshots: PathBuf,
    pub(crate) tmp: PathBuf,
    method: CopyMethod,
}

/// A folder that was moved to `tmp/`, from where it only goes away.
#[derive(Debug)]
#[must_use = "what is set aside takes space until it is erased"]
pub(crate) struct SetAside(Option<PathBuf>);

impl SetAside {
    pub(crate) fn erase(self) -> io::Result<()> {
        self.0.map_or(Ok(()), |place| storage::erase(&place))
    }
}

impl Folders {
    pub(crate) fn open(data: &Path, run: &Path) -> io::Result<Self> {
        let store = loopback::place(data)?;
        let mut folders = Self {
            boxes: store.join("boxes"),
            running: run.join("boxes"),
            spares: run.join("spares"),
            snapshots: store.join("snapshots"),
            tmp: store.join("tmp"),
            method: CopyMethod::Full,
        };
        let own = [
            &folders.boxes,
            &folders.running,
            &folders.spares,
            &folders.snapshots,
            &folders.tmp,
        ];
        for folder in own {
            private_folder(folder)?;
        }
        storage::clear(&folders.tmp, &LEFT)?;
        folders.method = method::probe(&folders.tmp)?;
        folders.drop_orphans()?;
        Ok(folders)
    }

    /// Snapshots of boxes that are gone: their removal was cut short, or their box never came.
    fn drop_orphans(&self) -> io::Result<()> {
        for entry in std::fs::read_dir(&self.snapshots)? {
            let entry = entry?;
            let name = entry.file_name();
            let id = name.to_str().and_then(|name| BoxId::parse(name).ok());
            if id.is_some_and(|id| !self.has(&id)) {
                self.set_aside(&entry.path())?.erase()?;
            }
        }
        Ok(())
    }

    /// How copies are made here.
    pub(crate) fn method(&self) -> CopyMethod {
        self.method
    }

    pub(crate) fn snapshots_of(&self, id: &BoxId) -> PathBuf {
        self.snapshots.join(id.as_str())
    }

    pub(crate) fn snapshot(&self, id: &BoxId, label: &Label) -> PathBuf {
        self.snapshots_of(id).join(label.as_str())
    }

    pub(crate) fn drop_snapshots(&self, id: &BoxId) -> io::Result<()> {
        self.set_aside(&self.snapshots_of(id))?.erase()
    }

    /// Moves a folder to `tmp/`: from then on it is gone, whatever becomes of the rest. Nothing
    /// there: nothing to do.
    pub(crate) fn set_aside(&self, folder: &Path) -> io::Result<SetAside> {
        let named = folder.file_name().unwrap_or_default().to_string_lossy();
        let mut number = 0u32;
        loop {
            let place = self.tmp.join(format!("{BEING_REMOVED}-{named}-{number}"));
            match renameat_with(CWD, folder, CWD, &place, RenameFlags::NOREPLACE) {
                Ok(()) => return Ok(SetAside(Some(place))),
                Err(Errno::NOENT) => return Ok(SetAside(None)),
                Err(Errno::EXIST) => number += 1,
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// What lies on the store's file system, for its fullness.
    pub(crate) fn store(&self) -> &Path {
        &self.boxes
    }

    pub(crate) fn of_box(&self, id: &BoxId) -> PathBuf {
        self.boxes.join(id.as_str())
    }

    /// The box's part of the run folder.
    pub(crate) fn of_running(&self, id: &BoxId) -> PathBuf {
        self.running.join(id.as_str())
    }

    /// The mark of a box that was begun ahead.
    pub(crate) fn of_spare(&self, id: &BoxId) -> PathBuf {
        self.spares.join(id.as_str())
    }

    /// Marks of boxes that were begun ahead, by this host or one before.
    pub(crate) fn spares(&self) -> io::Result<Vec<BoxId>> {
        let mut ids = Vec::new();
        for entry in std::fs::read_dir(&self.spares)? {
            let name = entry?.file_name();
            ids.extend(name.to_str().and_then(|name| BoxId::parse(name).ok()));
        }
        Ok(ids)
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

/// Makes the overlay's own folder in that of a box, which has none.
pub(crate) fn work_folder(of_box: &OwnedFd) -> io::Result<()> {
    mkdirat(of_box, WORK, Mode::RWXU)?;
    // What the umask took away.
    Ok(chmodat(of_box, WORK, Mode::RWXU, AtFlags::empty())?)
}

/// A descriptor that names a folder or a file and lets nobody read or write through it.
pub(crate) fn path_only(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(
        path,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}
