//! Makes the folders of a box.

use crate::Engine;
use crate::folders::{BEING_MADE, Folders, HOME, UPPER, WORK, WORKSPACE};
use crate::launch::AGENT_ID;
use crate::rootless::Privileges;
use crate::storage::Cradle;
use box_api::control::Profile;
use box_runtime::unpack::Published;
use box_runtime::{BoxSpec, Nesting, RuntimeError, fault};
use rustix::fs::{AtFlags, Mode, chmodat, chownat, mkdirat};
use std::io;
use std::sync::Arc;

pub(crate) async fn create(engine: Arc<Engine>, spec: BoxSpec) -> Result<(), RuntimeError> {
    refuse_nesting(&spec, engine.privileges)?;
    let turn = engine.turns.take(&spec.id).await;
    let id = spec.id;
    let made = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        make(&engine.folders, &spec, engine.privileges)
    });
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
        RuntimeError::engine("make the folders of the box", error)
    };
    match made
        .await
        .map_err(|error| failed(error.into()))?
        .map_err(|error| failed(error.into()))?
    {
        Published::Done => Ok(()),
        Published::AlreadyThere => Err(RuntimeError::Exists(id)),
    }
}

/// Said before anything is made, rather than a box that cannot do what was asked.
pub(crate) fn refuse_nesting(spec: &BoxSpec, privileges: Privileges) -> Result<(), RuntimeError> {
    let refuse = |why: &str, hint: &str| {
        Err(RuntimeError::Refused {
            why: why.to_owned(),
            hint: Some(hint.to_owned()),
        })
    };
    match (spec.nesting, spec.profile) {
        (Nesting::Allowed, Profile::Locked) => refuse(
            "only a box of profile `root` can hold containers",
            "make it with `--profile root`, or leave `--nested` out",
        ),
        (Nesting::Allowed, Profile::Root) if !privileges.has_ranges() => refuse(
            "a box with one id cannot hold containers",
            "install `uidmap` and give your user subordinate ids (`box doctor` says how), or leave `--nested` out",
        ),
        (Nesting::Refused, _) | (Nesting::Allowed, Profile::Root) => Ok(()),
    }
}

/// Born in `tmp/` and renamed, so that a box is there whole or not at all. Not synced to disk: a
/// machine that crashes now has a row without a box, which `reconcile` removes.
fn make(folders: &Folders, spec: &BoxSpec, privileges: Privileges) -> io::Result<Published> {
    let cradle = Cradle::new(&folders.tmp, BEING_MADE, folders.method())?;
    let tree = cradle.make()?;
    let user = match spec.profile {
        Profile::Locked => AGENT_ID,
        Profile::Root => 0,
    };
    let parts = [
        (WORKSPACE, user, 0o755),
        (HOME, user, 0o755),
        (UPPER, 0, 0o755),
        (WORK, 0, 0o700),
    ];
    for (name, owner, mode) in parts {
        let mode = Mode::from_raw_mode(mode);
        mkdirat(&tree, name, mode)?;
        // What the umask took away.
        chmodat(&tree, name, mode, AtFlags::empty())?;
        let (uid, gid) = privileges.on_disk(owner);
        chownat(&tree, name, Some(uid), Some(gid), AtFlags::empty())?;
    }
    fault::point("create.made");
    let published = cradle.place(&folders.of_box(&spec.id))?;
    fault::point("create.placed");
    Ok(published)
}
