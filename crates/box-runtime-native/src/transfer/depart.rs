//! Takes hold of a box's files and writes them as an archive.

use super::{BEING_EXPORTED, on_disk, overlay, owners, spool, teller_of, told};
use crate::Engine;
use crate::snapshots::telling::{Teller, work};
use crate::storage::layout::UPPER;
use crate::storage::walk::FOLDER;
use crate::storage::{Cradle, renumber};
use async_trait::async_trait;
use box_api::control::Profile;
use box_api::snapshot::{CopyMethod, Label, SnapshotInfo, SnapshotKind};
use box_runtime::archive::{
    ArchiveError, ArchiveWriter, FORMAT, LeftOut, OnDisk, Part, Pipe, State, Tree,
};
use box_runtime::unpack::Staging;
use box_runtime::{
    BoxSpec, Departure, Luggage, Manifest, Progress, RuntimeError, Snapshots as _, fault,
};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::fs::{CWD, Mode, openat};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::OwnedMutexGuard;

pub(super) async fn depart(
    engine: Arc<Engine>,
    spec: BoxSpec,
    luggage: Luggage,
    progress: &dyn Progress,
) -> Result<Box<dyn Departure>, RuntimeError> {
    let id = spec.id;
    let turn = engine.turns.take(&id).await;
    if !engine.folders.has(&id) {
        return Err(RuntimeError::NotFound(id));
    }
    let runtime = crate::NativeRuntime {
        engine: Arc::clone(&engine),
    };
    let snapshots = if luggage.snapshots {
        let mut all = runtime.list(&id).await?;
        // Of turns of conversations that do not travel.
        all.retain(|one| one.kind != SnapshotKind::BeforeTurn);
        all
    } else {
        Vec::new()
    };
    let method = engine.folders.method();
    let runs = engine.folders.first_process(&id).is_some();
    work(method, progress, move |teller| {
        let failed = |error: io::Error| {
            RuntimeError::engine(format!("take hold of the files of box {id}"), error)
        };
        let files = if runs || method != CopyMethod::Full {
            Files::Copied(copied(&engine, &spec, teller).map_err(failed)?)
        } else {
            let own = engine.folders.of_box(&id).join(UPPER);
            renumber::settle(&own, spec.id_offset).map_err(failed)?;
            teller.say(
                "the box waits until its files are written: this disk has no cheap copies"
                    .to_owned(),
            );
            Files::Held(turn)
        };
        fault::point("export.held");
        let departing: Box<dyn Departure> = Box::new(Departing {
            image: luggage.image,
            engine,
            spec,
            files,
            snapshots,
        });
        Ok(departing)
    })
    .await
}

fn copied(engine: &Engine, spec: &BoxSpec, teller: &Teller) -> io::Result<Cradle> {
    let folders = &engine.folders;
    let cradle = Cradle::new(&folders.tmp, BEING_EXPORTED, folders.method())?;
    teller.copy(&cradle, &folders.of_box(&spec.id))?;
    renumber::settle(&cradle.tree().join(UPPER), spec.id_offset)?;
    Ok(cradle)
}

/// A box about to leave.
#[derive(Debug)]
struct Departing {
    engine: Arc<Engine>,
    spec: BoxSpec,
    files: Files,
    snapshots: Vec<SnapshotInfo>,
    image: bool,
}

/// Files that nobody changes.
#[derive(Debug)]
enum Files {
    Copied(Cradle),
    /// The box's own, and its turn.
    Held(#[expect(dead_code, reason = "dropping it is what it is for")] OwnedMutexGuard<()>),
}

#[async_trait]
impl Departure for Departing {
    fn snapshots(&self) -> &[SnapshotInfo] {
        &self.snapshots
    }

    fn holds_the_box(&self) -> bool {
        matches!(self.files, Files::Held(_))
    }

    async fn send(
        self: Box<Self>,
        manifest: Manifest,
        sink: OwnedFd,
        progress: &dyn Progress,
    ) -> Result<LeftOut, RuntimeError> {
        let method = self.engine.folders.method();
        work(method, progress, move |teller| {
            let name = manifest.name.clone();
            let action = || format!("write the archive of box `{name}`");
            self.write(manifest, sink, teller)
                .map_err(|error| told(action(), error))
        })
        .await
    }
}

/// An open folder of a tree.
struct Opened {
    state: State,
    part: Part,
    folder: OwnedFd,
}

impl Departing {
    fn write(
        &self,
        mut manifest: Manifest,
        sink: OwnedFd,
        teller: &Teller,
    ) -> Result<LeftOut, ArchiveError> {
        let image = self.image().map_err(ArchiveError::Read)?;
        manifest.format = FORMAT;
        "native".clone_into(&mut manifest.runtime);
        manifest.image_digest.clone_from(&self.spec.image_digest);
        manifest.snapshots.clone_from(&self.snapshots);
        manifest.with_image = image.is_some();
        manifest.image_env = match &image {
            Some((_, env)) => env.clone(),
            None => Vec::new(),
        };
        let tmp = &self.engine.folders.tmp;
        let staging = Staging::new(tmp, BEING_EXPORTED).map_err(ArchiveError::Write)?;
        let spool = spool(&staging).map_err(ArchiveError::Write)?;
        let sink = Pipe::new(sink).map_err(ArchiveError::Write)?;
        let mut progress = teller_of(teller, "exported");
        let mut writer = ArchiveWriter::begin(sink, spool, &manifest, &mut progress)?;
        let now = self.open(&State::Now, &self.now())?;
        for tree in &now {
            writer.tree(&self.tree(tree), &[])?;
        }
        fault::point("export.half");
        let mut before = now;
        let here = before.len();
        for label in self.labels() {
            let state = State::Snapshot(label.clone());
            let place = self.engine.folders.snapshot(&self.spec.id, &label);
            let trees = self.open(&state, &place)?;
            writer.snapshot(&label)?;
            for tree in &trees {
                let like = before.iter().filter(|other| other.part == tree.part);
                let like: Vec<Tree<'_>> = like.map(|other| self.tree(other)).collect();
                writer.tree(&self.tree(tree), &like)?;
            }
            // What is compared with: the box as it is, and the snapshot before.
            before.truncate(here);
            before.extend(trees);
        }
        if let Some((root, _)) = image {
            writer.tree(
                &Tree {
                    owners: OnDisk::Same,
                    ..self.tree(&root)
                },
                &[],
            )?;
        }
        let (_, left_out) = writer.finish()?;
        fault::point("export.written");
        Ok(left_out)
    }

    fn labels(&self) -> Vec<Label> {
        self.snapshots
            .iter()
            .map(|info| info.label.clone())
            .collect()
    }

    /// Where the box's files are as they were when it left.
    fn now(&self) -> PathBuf {
        match &self.files {
            Files::Copied(cradle) => cradle.tree(),
            Files::Held(_) => self.engine.folders.of_box(&self.spec.id),
        }
    }

    fn open(&self, state: &State, place: &Path) -> Result<Vec<Opened>, ArchiveError> {
        let parts: &[Part] = match self.spec.profile {
            // Nothing can be in the others.
            Profile::Locked => &[Part::Workspace, Part::Home],
            Profile::Root => &[Part::Workspace, Part::Home, Part::Root],
        };
        let opened = parts.iter().map(|part| {
            let path = place.join(on_disk(*part));
            let folder = openat(CWD, &path, FOLDER, Mode::empty());
            let folder = folder.map_err(|_| ArchiveError::Changed {
                entry: state.tree(*part),
            })?;
            Ok(Opened {
                state: state.clone(),
                part: *part,
                folder,
            })
        });
        opened.collect()
    }

    fn tree<'o>(&self, opened: &'o Opened) -> Tree<'o> {
        Tree {
            state: opened.state.clone(),
            part: opened.part,
            folder: opened.folder.as_fd(),
            owners: owners(self.engine.privileges, self.spec.profile),
            overlay: overlay(self.engine.privileges),
        }
    }

    /// The root of the box's image, and its variables.
    #[expect(clippy::type_complexity, reason = "a folder and a list of variables")]
    fn image(&self) -> io::Result<Option<(Opened, Vec<(String, String)>)>> {
        let digest = &self.spec.image_digest;
        let root = self.engine.images.root_of(digest).filter(|_| self.image);
        let Some(root) = root else {
            return Ok(None);
        };
        let opened = Opened {
            state: State::Now,
            part: Part::Image,
            folder: openat(CWD, &root, FOLDER, Mode::empty())?,
        };
        Ok(Some((opened, self.engine.images.env_of(digest)?)))
    }
}
