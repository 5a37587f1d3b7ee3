//! Makes a box of what arrived.

use crate::Engine;
use crate::folders::work_folder;
use crate::images::ArrivedImage;
use crate::snapshots;
use crate::storage::layout::UPPER;
use crate::storage::walk::FOLDER;
use crate::storage::{self, Cradle, identity};
use async_trait::async_trait;
use box_runtime::archive::Part;
use box_runtime::unpack::{Published, Staging};
use box_runtime::{Arrived, BoxSpec, Images as _, Manifest, RuntimeError, fault};
use rustix::fd::BorrowedFd;
use rustix::fs::{
    AtFlags, CWD, Mode, RenameFlags, chmodat, chownat, mkdirat, openat, renameat_with,
};
use rustix::io::Errno;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// What was unpacked, in `tmp/`.
#[derive(Debug)]
pub(super) struct Unpacked {
    pub(super) now: Cradle,
    pub(super) snapshots: Labelled,
    pub(super) image: Staging,
}

/// A staging folder whose folders may be subvolumes.
#[derive(Debug)]
pub(super) struct Labelled(Option<Staging>);

impl From<Staging> for Labelled {
    fn from(staging: Staging) -> Self {
        Self(Some(staging))
    }
}

impl Labelled {
    /// A closed one is nowhere.
    pub(super) fn folder(&self) -> BorrowedFd<'_> {
        self.0.as_ref().map_or(CWD, Staging::folder)
    }

    fn path(&self) -> &Path {
        self.0.as_ref().map_or(Path::new(""), Staging::path)
    }

    fn publish(mut self, place: &Path) -> io::Result<Published> {
        match self.0.take() {
            Some(staging) => staging.publish(place),
            None => Ok(Published::AlreadyThere),
        }
    }
}

impl Drop for Labelled {
    fn drop(&mut self) {
        if let Some(staging) = &self.0 {
            // Best effort; `clear` tries again.
            drop(storage::erase(staging.path()));
        }
    }
}

/// An archive that was read whole.
#[derive(Debug)]
pub(super) struct Settling {
    engine: Arc<Engine>,
    manifest: Manifest,
    unpacked: Unpacked,
    image: Option<ArrivedImage>,
    digest: Option<String>,
}

impl Settling {
    pub(super) fn new(
        engine: Arc<Engine>,
        manifest: Manifest,
        unpacked: Unpacked,
        image: Option<ArrivedImage>,
    ) -> Self {
        Self {
            digest: image.as_ref().map(ArrivedImage::digest),
            engine,
            manifest,
            unpacked,
            image,
        }
    }
}

#[async_trait]
impl Arrived for Settling {
    fn image(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    async fn settle(self: Box<Self>, spec: &BoxSpec) -> Result<(), RuntimeError> {
        let id = spec.id;
        let turn = self.engine.turns.take(&id).await;
        let spec = spec.clone();
        let settled = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            self.make(&spec)
        });
        settled
            .await
            .map_err(|error| RuntimeError::engine(format!("make box {id}"), error))?
    }
}

impl Settling {
    fn make(self, spec: &BoxSpec) -> Result<(), RuntimeError> {
        let Self {
            engine,
            manifest,
            unpacked,
            image,
            digest,
        } = self;
        let Unpacked {
            now,
            snapshots: labelled,
            image: image_root,
        } = unpacked;
        let (id, folders) = (spec.id, &engine.folders);
        let failed =
            |error: io::Error| RuntimeError::engine(format!("make box {id} of the archive"), error);
        if folders.has(&id) {
            return Err(RuntimeError::Exists(id));
        }
        let brings_its_image = digest.as_ref() == Some(&spec.image_digest);
        if let Some(image) = image.filter(|_| brings_its_image)
            && !engine.images.is_ready(&spec.image_digest)
        {
            engine.images.take_in(image_root, &image)?;
        }
        if !engine.images.is_ready(&spec.image_digest) {
            return Err(RuntimeError::Refused {
                why: format!("the image `{}` is not there", spec.image_digest),
                hint: None,
            });
        }
        fault::point("import.image");
        complete(&engine, &now.tree()).map_err(failed)?;
        let tree = now.open().map_err(failed)?;
        work_folder(&tree).map_err(failed)?;
        for info in &manifest.snapshots {
            let place = labelled.path().join(info.label.as_str());
            complete(&engine, &place).map_err(failed)?;
            snapshots::describe(&place, info).map_err(failed)?;
        }
        fault::point("import.prepared");
        // Without its box nobody can have been told of what an earlier import left.
        folders.drop_snapshots(&id).map_err(failed)?;
        if !manifest.snapshots.is_empty() {
            labelled
                .publish(&folders.snapshots_of(&id))
                .map_err(failed)?;
        }
        fault::point("import.snapshots");
        match now.publish(&folders.of_box(&id)).map_err(failed)? {
            Published::Done => {}
            Published::AlreadyThere => return Err(RuntimeError::Exists(id)),
        }
        fault::point("import.published");
        Ok(())
    }
}

/// Gives a state the folders every state has, under their names on disk, and takes from it what
/// belongs to another machine.
fn complete(engine: &Engine, state: &Path) -> io::Result<()> {
    let folder = openat(CWD, state, FOLDER, Mode::empty())?;
    let flags = RenameFlags::NOREPLACE;
    match renameat_with(&folder, Part::Root.name(), &folder, UPPER, flags) {
        Err(Errno::NOENT) => {
            mkdirat(&folder, UPPER, Mode::RWXU)?;
            // What the umask took away.
            chmodat(&folder, UPPER, Mode::from_raw_mode(0o755), AtFlags::empty())?;
            let (uid, gid) = engine.privileges.on_disk(0);
            chownat(&folder, UPPER, Some(uid), Some(gid), AtFlags::empty())?;
        }
        renamed => renamed?,
    }
    identity::forget(&state.join(UPPER))
}
