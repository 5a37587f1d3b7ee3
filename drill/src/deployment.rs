//! The folder of a drill with the host that works in it, and the end of both.
//!
//! Whoever lives holds the lock in its folder. A drill that was killed leaves a folder whose lock is
//! free: the next drill ends what still runs there and removes it.

use crate::Options;
use crate::command::{self, Leash};
use crate::mounts::mounts_below;
use rustix::fs::FlockOperation;
use rustix::mount::UnmountFlags;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const PREFIX: &str = "drill-";
const LOCK: &str = "lock";
const REMOVE_ALL: &[&str] = &["rm", "all", "--force", "--now"];
/// Longest a verb may take that starts or ends something.
pub(crate) const VERB_TIME_MAX: Duration = Duration::from_mins(2);

/// Ends with everything in it.
#[derive(Debug)]
pub(crate) struct Deployment {
    /// The `box` program.
    program: PathBuf,
    folder: PathBuf,
    _lock: File,
}

impl Deployment {
    /// A new folder beside the images in `options.data_dir`, after those of killed drills are gone.
    pub(crate) fn make(options: &Options) -> io::Result<Self> {
        let beside = &options.data_dir;
        // One drill at a time looks for old folders and makes its own: one that is not locked yet
        // is never taken for an old one.
        let gate = File::open(beside)?;
        rustix::fs::flock(&gate, FlockOperation::LockExclusive)?;
        for left in left_behind(&options.program, beside)? {
            left.end()?;
        }
        let folder = tempfile::Builder::new()
            .prefix(PREFIX)
            .rand_bytes(4)
            .tempdir_in(beside)?;
        let made = Self {
            program: options.program.clone(),
            _lock: locked(folder.path())?.ok_or(io::ErrorKind::WouldBlock)?,
            folder: folder.keep(),
        };
        fs::create_dir(made.data())?;
        Ok(made)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.folder
    }

    /// The data folder of the drill's host.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    pub(crate) fn run(&self) -> PathBuf {
        self.folder.join("run")
    }

    /// A verb of the product, spoken to the drill's host.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        #[expect(
            clippy::disallowed_methods,
            reason = "the one home for the product's processes"
        )]
        let mut command = Command::new(&self.program);
        command
            .args(words)
            .env("BOX_DATA_DIR", self.data())
            .env("BOX_RUN_DIR", self.run())
            .env("BOX_CONFIG", self.folder.join("config.toml"));
        command
    }

    /// Ends boxes, host and way out, and removes the folder.
    pub(crate) fn end(&self) -> io::Result<()> {
        if !self.folder.exists() {
            return Ok(());
        }
        if self.data().join("box.db").exists() && !self.says(REMOVE_ALL) {
            // A host of another build may be in the way.
            self.says(&["serve", "--stop"]);
            self.says(REMOVE_ALL);
        }
        self.says(&["serve", "--stop", "--all", "--force"]);
        for place in mounts_below(&self.folder)? {
            rustix::mount::unmount(&place, UnmountFlags::DETACH)?;
        }
        fs::remove_dir_all(&self.folder)
    }

    /// Whether a verb worked. What cannot be ended politely shows when the folder is removed.
    fn says(&self, words: &[&str]) -> bool {
        let leash = Leash {
            time_max: VERB_TIME_MAX,
            stop: None,
        };
        command::finish(self.command(words), &[], leash).is_ok_and(|ran| ran.code == 0)
    }
}

impl Drop for Deployment {
    fn drop(&mut self) {
        // What is still there then, the next drill removes.
        drop(self.end());
    }
}

/// Folders of drills that are no more.
fn left_behind(program: &Path, beside: &Path) -> io::Result<Vec<Deployment>> {
    let mut left = Vec::new();
    for entry in fs::read_dir(beside)? {
        let entry = entry?;
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if !is_ours || !entry.file_type()?.is_dir() {
            continue;
        }
        if let Some(lock) = locked(&entry.path())? {
            left.push(Deployment {
                program: program.to_owned(),
                folder: entry.path(),
                _lock: lock,
            });
        }
    }
    Ok(left)
}

/// The folder's lock, unless somebody has it.
fn locked(folder: &Path) -> io::Result<Option<File>> {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(folder.join(LOCK))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_whose_drill_is_no_more_are_left_behind() {
        let beside = tempfile::tempdir().unwrap();
        let program = Path::new("/nonexistent/box");
        for name in ["drill-live", "drill-dead", "drill-unborn", "images"] {
            fs::create_dir(beside.path().join(name)).unwrap();
        }
        fs::write(beside.path().join("drill-dead").join(LOCK), "").unwrap();
        let live = locked(&beside.path().join("drill-live")).unwrap();
        assert!(live.is_some());
        let left = left_behind(program, beside.path()).unwrap();
        let mut names: Vec<_> = left
            .iter()
            .map(|one| one.path().file_name().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["drill-dead", "drill-unborn"]);
        drop(left);
        let mut stay: Vec<_> = fs::read_dir(beside.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        stay.sort();
        assert_eq!(stay, ["drill-live", "images"]);
    }
}
