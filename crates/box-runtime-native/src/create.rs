//! Makes the folders of a box.

use crate::Engine;
use crate::folders::{BEING_MADE, HOME, UPPER, WORK, WORKSPACE};
use crate::launch::AGENT_ID;
use box_api::control::Profile;
use box_runtime::unpack::{Published, Staging};
use box_runtime::{BoxSpec, RuntimeError};
use rustix::fs::{AtFlags, CWD, Gid, Mode, RenameFlags, Uid};
use rustix::io::Errno;
use std::io;
use std::path::Path;

pub(crate) async fn create(engine: &Engine, spec: BoxSpec) -> Result<(), RuntimeError> {
    let _turn = engine.turns.take(&spec.id).await;
    let (tmp, place) = (engine.folders.tmp.clone(), engine.folders.of_box(&spec.id));
    let id = spec.id;
    let made = tokio::task::spawn_blocking(move || make(&tmp, &place, &spec)).await;
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
        RuntimeError::engine("make the folders of the box", error)
    };
    match made
        .map_err(|error| failed(error.into()))?
        .map_err(|error| failed(error.into()))?
    {
        Published::Done => Ok(()),
        Published::AlreadyThere => Err(RuntimeError::Exists(id)),
    }
}

/// Born in `tmp/` and renamed, so that a box is there whole or not at all. Not synced to disk: a
/// machine that crashes now has a row without a box, which `reconcile` removes.
fn make(tmp: &Path, place: &Path, spec: &BoxSpec) -> io::Result<Published> {
    let staging = Staging::new(tmp, BEING_MADE)?;
    let user = match spec.profile {
        Profile::Locked => AGENT_ID,
        Profile::Root => 0,
    };
    // The overlay's upper layer cannot be idmapped, so it alone has the box's real ids.
    let folders = [
        (WORKSPACE, user, 0o755),
        (HOME, user, 0o755),
        (UPPER, spec.id_offset, 0o755),
        (WORK, 0, 0o700),
    ];
    for (name, owner, mode) in folders {
        let mode = Mode::from_raw_mode(mode);
        rustix::fs::mkdirat(staging.folder(), name, mode)?;
        // What the umask took away.
        rustix::fs::chmodat(staging.folder(), name, mode, AtFlags::empty())?;
        let (uid, gid) = (Uid::from_raw(owner), Gid::from_raw(owner));
        rustix::fs::chownat(
            staging.folder(),
            name,
            Some(uid),
            Some(gid),
            AtFlags::empty(),
        )?;
    }
    match rustix::fs::renameat_with(CWD, staging.path(), CWD, place, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(Published::Done),
        Err(Errno::EXIST) => Ok(Published::AlreadyThere),
        Err(errno) => Err(errno.into()),
    }
}
