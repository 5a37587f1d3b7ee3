//! How copies are made here, tried out when the engine opens.

use super::btrfs;
use super::cradle::Cradle;
use super::walk::FOLDER;
use box_api::snapshot::CopyMethod;
use rustix::fd::AsFd as _;
use rustix::fs::{CWD, Mode, OFlags, ioctl_ficlone, openat};
use std::ffi::OsStr;
use std::io;
use std::path::Path;

/// Name of the trial in `tmp/`.
pub(crate) const TRIAL: &str = "trial";

/// The best method that works in `tmp`.
///
/// # Errors
/// When nothing can be written there at all.
pub(crate) fn probe(tmp: &Path) -> io::Result<CopyMethod> {
    let trial = Cradle::new(tmp, TRIAL, CopyMethod::Full)?;
    if subvolumes_work(&trial) {
        return Ok(CopyMethod::Subvolume);
    }
    trial.make()?;
    if sharing_works(&trial)? {
        return Ok(CopyMethod::Reflink);
    }
    Ok(CopyMethod::Full)
}

fn subvolumes_work(trial: &Cradle) -> bool {
    let (one, other) = (OsStr::new("one"), OsStr::new("other"));
    let folder = trial.folder();
    let tried = || -> io::Result<bool> {
        if !btrfs::holds(folder)? {
            return Ok(false);
        }
        btrfs::create(folder, one)?;
        let made = openat(folder, one, FOLDER, Mode::empty())?;
        btrfs::snapshot(made.as_fd(), folder, other)?;
        btrfs::destroy(folder, other)?;
        btrfs::destroy(folder, one)?;
        Ok(true)
    };
    tried().unwrap_or(false)
}

fn sharing_works(trial: &Cradle) -> io::Result<bool> {
    let tree = trial.tree();
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
    let file = |name: &str| openat(CWD, tree.join(name), flags, Mode::RUSR | Mode::WUSR);
    let (one, other) = (file("one")?, file("other")?);
    rustix::io::write(&one, &[1; 8192])?;
    Ok(ioctl_ficlone(&other, &one).is_ok())
}
