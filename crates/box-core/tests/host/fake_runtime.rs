//! An engine without boxes: keeps what it was told, refuses what an engine refuses, and can be held
//! at any step.

#[path = "fake_runtime/limits.rs"]
mod limits;
#[path = "fake_runtime/pool.rs"]
mod pool;
#[path = "fake_runtime/undo.rs"]
mod undo;

use async_trait::async_trait;
use box_api::BoxId;
use box_api::control::ImageInfo;
use box_api::snapshot::SnapshotInfo;
use box_runtime::{
    BoxSockets, BoxSpec, DEFAULT_IMAGE, Disk, Ended, ExecSpec, Execution, Freezer, Images, Limiter,
    Observed, Pool, Processes, Progress, Prune, RunningProcess, Runtime, RuntimeError, Snapshots,
    Sockets, Started, Transparent, Unused, Usage,
};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, Notify, watch};

/// A step of the engine at which it can be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Create,
    Start,
    Stop,
    Remove,
    Take,
    Restore,
    Clone,
}

/// Whether a held step has had its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Hold {
    Before,
    After,
}

#[derive(Debug)]
struct Machine {
    spec: BoxSpec,
    running: bool,
    frozen: bool,
    usage: Usage,
    ended: Option<Ended>,
    /// What stands for the box's files.
    files: String,
    snapshots: Vec<(SnapshotInfo, String)>,
}

impl Machine {
    fn new(spec: BoxSpec) -> Self {
        Self {
            spec,
            running: false,
            frozen: false,
            usage: Usage::default(),
            ended: None,
            files: String::new(),
            snapshots: Vec::new(),
        }
    }
}

#[derive(Debug, Default)]
struct World {
    machines: BTreeMap<BoxId, Machine>,
    held: Option<(Step, Hold)>,
    failing: BTreeSet<Step>,
    images: Vec<ImageInfo>,
    commands: Vec<ExecSpec>,
    reopened: usize,
    /// Boxes begun ahead, and every id that ever was one's.
    spares: BTreeSet<BoxId>,
    begun: BTreeSet<BoxId>,
}

/// The engine. Clones share one world, as hosts that come after each other share a machine.
#[derive(Debug, Clone)]
pub(crate) struct FakeRuntime {
    world: Arc<Mutex<World>>,
    reached: Arc<Notify>,
    /// What commands end with; nothing until it is set.
    exit: watch::Sender<Option<i32>>,
    killed: watch::Sender<u32>,
}

impl Default for FakeRuntime {
    fn default() -> Self {
        let images = [DEFAULT_IMAGE, "debian:trixie"].map(|image| ImageInfo {
            image: image.to_owned(),
            digest: format!("sha256:{image}"),
            bytes: 7,
            created_at_ms: 1,
        });
        let world = World {
            images: images.to_vec(),
            ..World::default()
        };
        Self {
            world: Arc::new(Mutex::new(world)),
            reached: Arc::default(),
            exit: watch::channel(None).0,
            killed: watch::channel(0).0,
        }
    }
}

impl FakeRuntime {
    /// The next time this step is taken it does not go on.
    pub(crate) async fn hold(&self, step: Step, hold: Hold) {
        self.world.lock().await.held = Some((step, hold));
    }

    /// Waits until a held step was reached.
    pub(crate) async fn held(&self) {
        self.reached.notified().await;
    }

    pub(crate) async fn let_go(&self) {
        self.world.lock().await.held = None;
    }

    /// From now on this step fails.
    pub(crate) async fn fail(&self, step: Step) {
        self.world.lock().await.failing.insert(step);
    }

    pub(crate) async fn mend(&self) {
        self.world.lock().await.failing.clear();
    }

    /// The box ends by itself.
    pub(crate) async fn die(&self, id: &BoxId) {
        self.world
            .lock()
            .await
            .machines
            .get_mut(id)
            .unwrap()
            .running = false;
    }

    /// A box no host knows of.
    pub(crate) async fn plant(&self, spec: BoxSpec) {
        let mut machine = Machine::new(spec);
        machine.running = true;
        let id = machine.spec.id;
        self.world.lock().await.machines.insert(id, machine);
    }

    /// A box's files are lost.
    pub(crate) async fn lose(&self, id: &BoxId) {
        self.world.lock().await.machines.remove(id);
    }

    pub(crate) async fn spec(&self, id: &BoxId) -> Option<BoxSpec> {
        self.world
            .lock()
            .await
            .machines
            .get(id)
            .map(|machine| machine.spec.clone())
    }

    pub(crate) async fn commands(&self) -> Vec<ExecSpec> {
        self.world.lock().await.commands.clone()
    }

    pub(crate) async fn reopened(&self) -> usize {
        self.world.lock().await.reopened
    }

    /// Every command, running or to come, ends with this code.
    pub(crate) fn end_commands(&self, code: i32) {
        self.exit.send_replace(Some(code));
    }

    /// Waits until a command was killed by being let go.
    pub(crate) async fn killed(&self) {
        let mut killed = self.killed.subscribe();
        killed.wait_for(|count| *count > 0).await.unwrap();
    }

    async fn step(&self, step: Step, hold: Hold) -> Result<(), RuntimeError> {
        let (stops, failing) = {
            let world = self.world.lock().await;
            (
                world.held == Some((step, hold)),
                world.failing.contains(&step),
            )
        };
        if stops {
            self.reached.notify_one();
            std::future::pending::<()>().await;
        }
        if failing && hold == Hold::Before {
            return Err(RuntimeError::engine(
                format!("{step:?} a box"),
                "the test says so",
            ));
        }
        Ok(())
    }
}

#[async_trait]
impl Runtime for FakeRuntime {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn limits_held_by(&self) -> &'static str {
        "nobody"
    }

    async fn create(&self, spec: &BoxSpec) -> Result<(), RuntimeError> {
        self.step(Step::Create, Hold::Before).await?;
        {
            let mut world = self.world.lock().await;
            if world.machines.contains_key(&spec.id) {
                return Err(RuntimeError::Exists(spec.id));
            }
            let known = world
                .images
                .iter()
                .any(|image| image.digest == spec.image_digest);
            assert!(known, "a box from an image that was never made ready");
            let shared = world
                .machines
                .values()
                .any(|m| m.spec.id_offset == spec.id_offset);
            assert!(!shared, "two boxes share an id range");
            world.machines.insert(spec.id, Machine::new(spec.clone()));
        }
        self.step(Step::Create, Hold::After).await
    }

    async fn start(&self, spec: &BoxSpec) -> Result<Started, RuntimeError> {
        self.step(Step::Start, Hold::Before).await?;
        let ran = {
            let mut world = self.world.lock().await;
            let machine = world
                .machines
                .get_mut(&spec.id)
                .ok_or(RuntimeError::NotFound(spec.id))?;
            assert_eq!(
                machine.spec.id_offset, spec.id_offset,
                "its range is for life"
            );
            assert_eq!(
                machine.spec.image_digest, spec.image_digest,
                "its image is for life"
            );
            for file in &spec.files {
                assert!(
                    file.source.is_file(),
                    "{} is not there",
                    file.source.display()
                );
            }
            for mount in &spec.mounts {
                assert!(
                    mount.source.is_dir(),
                    "{} is not there",
                    mount.source.display()
                );
            }
            machine.spec = spec.clone();
            machine.ended = None;
            world.spares.remove(&spec.id);
            let machine = world.machines.get_mut(&spec.id).unwrap();
            std::mem::replace(&mut machine.running, true)
        };
        self.step(Step::Start, Hold::After).await?;
        Ok(Started {
            pid: 1,
            sockets: (!ran).then(sockets),
        })
    }

    async fn stop(&self, id: &BoxId, _grace: Duration) -> Result<(), RuntimeError> {
        self.step(Step::Stop, Hold::Before).await?;
        {
            let mut world = self.world.lock().await;
            let machine = world.machines.get_mut(id);
            let machine = machine.ok_or(RuntimeError::NotFound(*id))?;
            (machine.running, machine.frozen) = (false, false);
        }
        self.step(Step::Stop, Hold::After).await
    }

    async fn remove(&self, id: &BoxId) -> Result<(), RuntimeError> {
        self.step(Step::Remove, Hold::Before).await?;
        {
            let mut world = self.world.lock().await;
            let running = world
                .machines
                .get(id)
                .is_some_and(|machine| machine.running);
            assert!(!running, "a running box is removed");
            world
                .machines
                .remove(id)
                .ok_or(RuntimeError::NotFound(*id))?;
        }
        self.step(Step::Remove, Hold::After).await
    }

    async fn list(&self) -> Result<Vec<Observed>, RuntimeError> {
        let world = self.world.lock().await;
        let seen = world.machines.iter().map(|(id, machine)| Observed {
            id: *id,
            running: machine.running,
            pid: machine.running.then_some(4242),
        });
        Ok(seen.collect())
    }

    async fn exec(&self, id: &BoxId, spec: ExecSpec) -> Result<Execution, RuntimeError> {
        let mut world = self.world.lock().await;
        let machine = world.machines.get(id).ok_or(RuntimeError::NotFound(*id))?;
        if !machine.running {
            return Err(RuntimeError::NotRunning(*id));
        }
        let streams = if spec.terminal.is_some() { 1 } else { 3 };
        world.commands.push(spec);
        Ok(Execution {
            streams: (0..streams).map(|_| null()).collect(),
            process: Box::new(FakeProcess {
                exit: self.exit.subscribe(),
                killed: self.killed.clone(),
            }),
        })
    }

    fn images(&self) -> &dyn Images {
        self
    }

    fn processes(&self) -> Option<&dyn Processes> {
        None
    }

    fn sockets(&self) -> Option<&dyn Sockets> {
        Some(self)
    }

    fn snapshots(&self) -> Option<&dyn Snapshots> {
        Some(self)
    }

    fn freezer(&self) -> Option<&dyn Freezer> {
        Some(self)
    }

    fn limiter(&self) -> Option<&dyn Limiter> {
        Some(self)
    }

    fn disk(&self) -> Option<&dyn Disk> {
        Some(self)
    }

    fn pool(&self) -> Option<&dyn Pool> {
        Some(self)
    }
}

#[async_trait]
impl Images for FakeRuntime {
    async fn prepare(
        &self,
        image: &str,
        progress: &dyn Progress,
    ) -> Result<ImageInfo, RuntimeError> {
        progress.say(&format!("looking for `{image}`"));
        let world = self.world.lock().await;
        let found = world.images.iter().find(|known| known.image == image);
        found.cloned().ok_or_else(|| RuntimeError::Refused {
            why: format!("there is no image `{image}`"),
            hint: Some("images are `debian:<suite>` and `file:<tar>`".to_owned()),
        })
    }

    async fn list(&self) -> Result<Vec<ImageInfo>, RuntimeError> {
        Ok(self.world.lock().await.images.clone())
    }

    async fn remove(&self, image: &str) -> Result<(), RuntimeError> {
        let mut world = self.world.lock().await;
        let before = world.images.len();
        world.images.retain(|known| known.image != image);
        assert_eq!(
            world.images.len() + 1,
            before,
            "an image that is not there is removed"
        );
        Ok(())
    }

    fn is_ready(&self, _digest: &str) -> bool {
        true
    }

    fn canonical(&self, image: &str) -> Result<String, RuntimeError> {
        Ok(image.to_owned())
    }

    async fn refresh(
        &self,
        image: &str,
        progress: &dyn Progress,
    ) -> Result<ImageInfo, RuntimeError> {
        self.prepare(image, progress).await
    }

    async fn adopt(
        &self,
        archive: &Path,
        name: &str,
        _progress: &dyn Progress,
    ) -> Result<ImageInfo, RuntimeError> {
        let made = ImageInfo {
            image: format!("built:{name}"),
            digest: archive.display().to_string(),
            bytes: 1,
            created_at_ms: 1,
        };
        self.world.lock().await.images.push(made.clone());
        Ok(made)
    }

    async fn prune(&self, used: Vec<String>, how: Prune) -> Result<Unused, RuntimeError> {
        let mut world = self.world.lock().await;
        let (kept, images): (Vec<_>, Vec<_>) = world
            .images
            .clone()
            .into_iter()
            .partition(|image| used.contains(&image.digest));
        if how == Prune::Remove {
            world.images = kept;
        }
        Ok(Unused {
            images,
            downloads_bytes: 0,
        })
    }
}

#[async_trait]
impl Sockets for FakeRuntime {
    async fn reopen(&self, id: &BoxId) -> Result<BoxSockets, RuntimeError> {
        let mut world = self.world.lock().await;
        let machine = world.machines.get(id).ok_or(RuntimeError::NotFound(*id))?;
        if !machine.running {
            return Err(RuntimeError::NotRunning(*id));
        }
        world.reopened += 1;
        Ok(sockets())
    }
}

#[derive(Debug)]
struct FakeProcess {
    exit: watch::Receiver<Option<i32>>,
    killed: watch::Sender<u32>,
}

#[async_trait]
impl RunningProcess for FakeProcess {
    async fn signal(&self, number: i32) -> Result<(), RuntimeError> {
        Err(RuntimeError::engine(
            format!("send signal {number}"),
            "nothing runs here",
        ))
    }

    async fn wait(&self) -> Result<i32, RuntimeError> {
        let mut exit = self.exit.clone();
        let code = exit.wait_for(Option::is_some).await;
        code.map(|code| code.unwrap_or_default())
            .map_err(|error| RuntimeError::engine("wait", error))
    }
}

impl Drop for FakeProcess {
    fn drop(&mut self) {
        self.killed.send_modify(|count| *count += 1);
    }
}

fn null() -> OwnedFd {
    std::fs::File::open("/dev/null").unwrap().into()
}

/// Descriptors in the place of sockets: nobody reads from them here.
fn sockets() -> BoxSockets {
    BoxSockets {
        dns_udp: null(),
        dns_tcp: null(),
        proxy: null(),
        transparent: Transparent::AllPorts(null()),
        pidfd: null(),
    }
}
