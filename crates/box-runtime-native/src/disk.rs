//! How much disk boxes use, and what is done when one uses more than it may or the machine's own
//! disk gets short. See `docs/design/0003-disk-limit.md`.
//!
//! One task watches the boxes that run: [`watch`] is what it does each second, [`policy`] how it
//! decides.

mod policy;
mod watch;

use crate::folders::{Folders, HOME, UPPER, WORKSPACE};
use crate::snapshots::used_by_snapshots;
use crate::storage::measure::measure;
use crate::storage::walk::FOLDER;
use crate::{Engine, NativeRuntime};
use async_trait::async_trait;
use box_api::BoxId;
use box_runtime::{Disk, DiskEvent, DiskUsage, RuntimeError};
use rustix::fd::AsFd as _;
use rustix::fs::{CWD, Mode, openat};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::{Mutex, mpsc};

/// Orders the watch has not taken yet; whoever gives one waits.
const ORDERS_MAX: usize = 4096;
/// Events nobody has read yet; more are dropped, so that boxes are watched on.
const EVENTS_MAX: usize = 256;
/// In the run folder of a box: its limit, for the next host.
const LIMIT_FILE: &str = "disk-bytes";

#[async_trait]
impl Disk for NativeRuntime {
    async fn disk_usage(&self, id: &BoxId) -> Result<DiskUsage, RuntimeError> {
        let (engine, id) = (Arc::clone(&self.engine), *id);
        if !engine.folders.has(&id) {
            return Err(RuntimeError::NotFound(id));
        }
        let measured = tokio::task::spawn_blocking(move || usage(&engine.folders, &id)).await;
        let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
            RuntimeError::engine(format!("measure the files of box {id}"), error)
        };
        measured
            .map_err(|error| failed(error.into()))?
            .map_err(|error| failed(error.into()))
    }

    fn keep_free(&self, bytes: u64) {
        self.engine.disk.reserve.store(bytes, Ordering::Relaxed);
    }

    async fn next_event(&self) -> DiskEvent {
        let watch = self.engine.disk.running(&self.engine);
        let mut events = watch.events.lock().await;
        match events.recv().await {
            Some(event) => event,
            // The watch ended, which it does with the engine only.
            None => std::future::pending().await,
        }
    }
}

fn usage(folders: &Folders, id: &BoxId) -> io::Result<DiskUsage> {
    let of_box = folders.of_box(id);
    Ok(DiskUsage {
        workspace_bytes: part(&of_box, WORKSPACE)?,
        home_bytes: part(&of_box, HOME)?,
        root_bytes: part(&of_box, UPPER)?,
        snapshots_bytes: used_by_snapshots(folders, id)?,
    })
}

fn part(of_box: &Path, name: &str) -> io::Result<u64> {
    measure(openat(CWD, of_box.join(name), FOLDER, Mode::empty())?.as_fd())
}

/// What counts towards a box's limit.
fn counted(folders: &Folders, id: &BoxId) -> io::Result<u64> {
    let of_box = folders.of_box(id);
    let parts = [WORKSPACE, HOME, UPPER];
    parts.iter().map(|name| part(&of_box, name)).sum()
}

/// What the watch is told.
#[derive(Debug)]
enum Order {
    /// A box runs, or has another limit.
    Limit(BoxId, u64),
    /// It does not run any more.
    Forget(BoxId),
}

/// The watch of an engine; it begins when the first box or the first listener comes.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    running: OnceLock<Running>,
    /// Bytes of the machine's disk that are kept free of boxes; 0: as usual.
    reserve: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Running {
    orders: mpsc::Sender<Order>,
    events: Mutex<mpsc::Receiver<DiskEvent>>,
}

impl Watch {
    fn running(&self, engine: &Arc<Engine>) -> &Running {
        self.running.get_or_init(|| {
            let (orders, taken) = mpsc::channel(ORDERS_MAX);
            let (told, events) = mpsc::channel(EVENTS_MAX);
            let reserve = Arc::clone(&self.reserve);
            let watching = watch::run(Arc::downgrade(engine), taken, told, reserve);
            tokio::spawn(watching);
            let events = Mutex::new(events);
            Running { orders, events }
        })
    }

    /// A box was started, or has another limit from now on.
    pub(crate) async fn limit(&self, engine: &Arc<Engine>, id: &BoxId, bytes: u64) {
        let file = engine.folders.of_running(id).join(LIMIT_FILE);
        // A later host that does not find it has no limit for the box until it is told one.
        drop(std::fs::write(file, bytes.to_string()));
        drop(
            self.running(engine)
                .orders
                .send(Order::Limit(*id, bytes))
                .await,
        );
    }

    /// A box does not run any more.
    pub(crate) async fn forget(&self, id: &BoxId) {
        if let Some(running) = self.running.get() {
            drop(running.orders.send(Order::Forget(*id)).await);
        }
    }
}

/// The limits of the boxes that run since an earlier host's days.
fn found(folders: &Folders) -> io::Result<Vec<(BoxId, u64)>> {
    let limit = |id: &BoxId| {
        let text = std::fs::read_to_string(folders.of_running(id).join(LIMIT_FILE));
        text.ok()?.parse().ok()
    };
    let running = folders.list()?.into_iter().filter(|seen| seen.running);
    Ok(running
        .filter_map(|seen| Some((seen.id, limit(&seen.id)?)))
        .collect())
}
