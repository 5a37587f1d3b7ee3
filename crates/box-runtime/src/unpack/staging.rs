//! Where a tree is born: a folder in `tmp/` that either gets its place whole or disappears.
//!
//! Crash rule: write, `syncfs` once, `renameat2(RENAME_NOREPLACE)`, fsync the folder it went into.
//! A staging folder is held by a `flock`, which the kernel drops with its process, so [`clear`]
//! at start-up takes away what a crash left and nothing else.

use crate::erase::erase;
use rustix::fs::{
    CWD, FlockOperation, Mode, OFlags, RenameFlags, flock, fsync, mkdir, open, renameat_with,
    syncfs,
};
use rustix::io::{Errno, retry_on_intr};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A folder of its own, removed when dropped before it was published.
#[derive(Debug)]
pub struct Staging {
    path: PathBuf,
    folder: OwnedFd,
}

/// What became of a staging folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    Done,
    /// Something has the name already; the staging folder was removed.
    AlreadyThere,
}

impl Staging {
    /// Makes `<tmp>/<what>-<pid>-<n>`, open to its owner only. Makes `tmp` as well.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn new(tmp: &Path, what: &str) -> io::Result<Self> {
        std::fs::create_dir_all(tmp)?;
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = tmp.join(format!("{what}-{}-{number}", std::process::id()));
            match mkdir(&path, Mode::RWXU) {
                Err(Errno::EXIST) => continue,
                made => made?,
            }
            let folder = open(&path, FOLDER, Mode::empty())?;
            let staging = Self { path, folder };
            flock(&staging.folder, FlockOperation::NonBlockingLockExclusive)?;
            return Ok(staging);
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn folder(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// Gives the tree its place, on disk for good when this returns.
    ///
    /// # Errors
    /// When it cannot be written (a full disk may only show here) or moved; it is removed then.
    pub fn publish(self, target: &Path) -> io::Result<Published> {
        syncfs(&self.folder)?;
        match renameat_with(CWD, &self.path, CWD, target, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => return Ok(Published::AlreadyThere),
            moved => moved?,
        }
        if let Some(parent) = target.parent() {
            fsync(open(parent, FOLDER, Mode::empty())?)?;
        }
        Ok(Published::Done)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // Published: there is nothing at the path any more. Else: best effort, `clear` comes again.
        drop(erase(&self.path));
    }
}

/// Takes a lock that goes with the descriptor, making the file if need be. When somebody has it,
/// `waiting` is called once and the lock waited for; whoever holds it has deadlines of its own.
///
/// # Errors
/// When the file cannot be made or locked.
pub fn hold(path: &Path, waiting: impl FnOnce()) -> io::Result<OwnedFd> {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => {
            waiting();
            retry_on_intr(|| flock(&file, FlockOperation::LockExclusive))?;
        }
        locked => locked?,
    }
    Ok(file.into())
}

/// Removes what crashed processes left in `tmp` under the name `what`; says how many trees.
///
/// # Errors
/// When `tmp` cannot be read or a tree cannot be removed. No `tmp` is no error.
pub fn clear(tmp: &Path, what: &str) -> io::Result<usize> {
    let entries = match std::fs::read_dir(tmp) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let mut cleared = 0;
    for entry in entries {
        let entry = entry?;
        let ours = entry.file_name().to_str().is_some_and(|name| {
            name.strip_prefix(what)
                .is_some_and(|rest| rest.starts_with('-'))
        });
        if !ours || !entry.file_type()?.is_dir() {
            continue;
        }
        let folder = open(entry.path(), FOLDER, Mode::empty())?;
        match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => continue,
            locked => locked?,
        }
        erase(&entry.path())?;
        cleared += 1;
    }
    Ok(cleared)
}
