//! Boxes made of namespaces, mounts, cgroups and seccomp, without a daemon.
//!
//! `box serve` calls [`Spawner::fork`] while it is single-threaded, starts its async runtime, and
//! opens a [`NativeRuntime`] over it. The files are named after the verbs; `spawner` and `launch`
//! make a box, `network`, `cgroup` and `seccomp` are what one is made of.

#![expect(
    unsafe_code,
    reason = "system calls no crate wraps; each use says why it is sound"
)]

pub mod attempts;
mod cgroup;
mod create;
mod disk;
mod exec;
mod folders;
mod freeze;
pub mod images;
mod launch;
mod limit;
mod network;
mod pool;
mod programs;
mod record;
pub mod rootless;
mod seccomp;
mod snapshots;
mod spawner;
mod start;
mod step;
mod stop;
pub mod storage;
mod sys;
mod transfer;
mod turns;

pub use images::ImageStore;
pub use programs::program;
pub use rootless::Privileges;
pub use seccomp::oci_profile as oci_seccomp_profile;
pub use spawner::Spawner;
pub use sys::close_on_exec_from;

use async_trait::async_trait;
use box_api::BoxId;
use box_runtime::{
    BoxSockets, BoxSpec, Disk, ExecSpec, Execution, Freezer, Images, Limiter, Observed, Pool,
    Processes, Runtime, RuntimeError, Snapshots, Sockets, Started, Transfer,
};
use folders::Folders;
use programs::Programs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use turns::Turns;

/// The native engine of one data folder.
#[derive(Debug, Clone)]
pub struct NativeRuntime {
    engine: Arc<Engine>,
}

/// What the verbs work with.
#[derive(Debug)]
struct Engine {
    folders: Folders,
    spawner: Spawner,
    programs: Programs,
    images: ImageStore,
    privileges: Privileges,
    disk: disk::Watch,
    spares: pool::Spares,
    /// One verb at a time for each box.
    turns: Turns,
}

impl NativeRuntime {
    /// Opens the engine over `data_dir` and `run_dir`, which are there and belong to the host
    /// alone: installs the static programs, clears what interrupted verbs left in `tmp/`.
    ///
    /// # Errors
    /// When a folder cannot be made, read or written.
    pub fn open(data_dir: &Path, run_dir: &Path, spawner: Spawner) -> io::Result<Self> {
        let privileges = spawner.privileges();
        privileges.claim(data_dir)?;
        let folders = Folders::open(data_dir, run_dir)?;
        let programs = Programs::install(data_dir)?;
        if folders.list()?.iter().all(|seen| !seen.running) {
            programs.forget_others()?;
        }
        let images = ImageStore::open(data_dir)?;
        let engine = Engine {
            folders,
            spawner,
            programs,
            images,
            privileges,
            disk: disk::Watch::default(),
            spares: pool::Spares::default(),
            turns: Turns::default(),
        };
        pool::clear(&engine)?;
        Ok(Self {
            engine: Arc::new(engine),
        })
    }

    /// What the boxes are made with, for `box doctor` and `box info`.
    pub fn privileges(&self) -> Privileges {
        self.engine.privileges
    }

    /// Process id of the spawner, for `box doctor` and tests.
    pub fn spawner_pid(&self) -> u32 {
        self.engine.spawner.pid()
    }
}

/// A verb runs to its end even when whoever asked goes away: half a start would be a box nobody
/// knows of.
async fn to_the_end<T: Send + 'static>(
    verb: impl Future<Output = Result<T, RuntimeError>> + Send + 'static,
) -> Result<T, RuntimeError> {
    let done = tokio::spawn(verb).await;
    done.map_err(|error| RuntimeError::engine("finish what was asked", error))?
}

#[async_trait]
impl Runtime for NativeRuntime {
    fn name(&self) -> &'static str {
        "native"
    }

    fn limits_held_by(&self) -> &'static str {
        self.engine.spawner.limits_held_by()
    }

    async fn create(&self, spec: &BoxSpec) -> Result<(), RuntimeError> {
        let (engine, spec) = (Arc::clone(&self.engine), spec.clone());
        to_the_end(async move { create::create(engine, spec).await }).await
    }

    async fn start(&self, spec: &BoxSpec) -> Result<Started, RuntimeError> {
        let (engine, spec) = (Arc::clone(&self.engine), spec.clone());
        to_the_end(async move { start::start(&engine, &spec).await }).await
    }

    async fn stop(&self, id: &BoxId, grace: Duration) -> Result<(), RuntimeError> {
        let (engine, id) = (Arc::clone(&self.engine), *id);
        to_the_end(async move { stop::stop(&engine, &id, grace).await }).await
    }

    async fn remove(&self, id: &BoxId) -> Result<(), RuntimeError> {
        let (engine, id) = (Arc::clone(&self.engine), *id);
        to_the_end(async move { stop::remove(&engine, &id).await }).await
    }

    async fn list(&self) -> Result<Vec<Observed>, RuntimeError> {
        let engine = Arc::clone(&self.engine);
        let listed = tokio::task::spawn_blocking(move || engine.folders.list()).await;
        listed
            .map_err(|error| RuntimeError::engine("list the boxes", error))?
            .map_err(|error| RuntimeError::engine("list the boxes", error))
    }

    async fn exec(&self, id: &BoxId, spec: ExecSpec) -> Result<Execution, RuntimeError> {
        exec::exec(&self.engine, id, spec).await
    }

    fn images(&self) -> &dyn Images {
        &self.engine.images
    }

    fn processes(&self) -> Option<&dyn Processes> {
        Some(self)
    }

    fn sockets(&self) -> Option<&dyn Sockets> {
        Some(self)
    }

    fn freezer(&self) -> Option<&dyn Freezer> {
        Some(self)
    }

    fn limiter(&self) -> Option<&dyn Limiter> {
        Some(self)
    }

    fn snapshots(&self) -> Option<&dyn Snapshots> {
        Some(self)
    }

    fn transfer(&self) -> Option<&dyn Transfer> {
        Some(self)
    }

    fn disk(&self) -> Option<&dyn Disk> {
        Some(self)
    }

    fn pool(&self) -> Option<&dyn Pool> {
        Some(self)
    }

    fn workspace(&self, id: &BoxId) -> Option<PathBuf> {
        Some(self.engine.folders.of_box(id).join(folders::WORKSPACE))
    }
}

#[async_trait]
impl Processes for NativeRuntime {
    async fn connect(&self, id: &BoxId) -> Result<OwnedFd, RuntimeError> {
        exec::connect(&self.engine, id)
    }
}

#[async_trait]
impl Sockets for NativeRuntime {
    async fn reopen(&self, id: &BoxId) -> Result<BoxSockets, RuntimeError> {
        let (engine, id) = (Arc::clone(&self.engine), *id);
        to_the_end(async move { start::reopen(&engine, &id).await }).await
    }
}

/// For this crate's tests: the way an overlay is mounted on kernels before 6.15, tried on this one.
/// What its root holds, after writing `probe` to it. Forks, so that the fork has one thread.
///
/// # Errors
/// When a folder cannot be opened or the overlay not mounted.
#[doc(hidden)]
pub fn overlay_by_helper(image: &Path, folder: &Path) -> io::Result<Vec<String>> {
    launch::overlay_by_helper(&folders::path_only(image)?, &folders::path_only(folder)?)
}
