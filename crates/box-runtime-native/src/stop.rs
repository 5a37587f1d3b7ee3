//! Stops a box, and removes one.

use crate::Engine;
use crate::folders::Folders;
use crate::freeze;
use crate::pool;
use crate::spawner::wire::Request;
use crate::sys;
use box_api::BoxId;
use box_runtime::{RuntimeError, fault};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How long the kernel may take to end everything in a box after SIGKILL to its first process.
const KILL_WAIT: Duration = Duration::from_secs(20);

/// Asks the guest to end the box, and after `grace` ends it. Stopped already: nothing to do.
pub(crate) async fn stop(engine: &Engine, id: &BoxId, grace: Duration) -> Result<(), RuntimeError> {
    let _turn = engine.turns.take(id).await;
    if !engine.folders.has(id) && engine.folders.first_process(id).is_none() {
        return Err(RuntimeError::NotFound(*id));
    }
    end(engine, id, grace).await
}

/// Stops the box without grace and removes its files and snapshots. Gone already: nothing to do.
pub(crate) async fn remove(engine: &Arc<Engine>, id: &BoxId) -> Result<(), RuntimeError> {
    let turn = engine.turns.take(id).await;
    end(engine, id, Duration::ZERO).await?;
    let (engine, named) = (Arc::clone(engine), *id);
    let removed = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        erase_box(&engine.folders, &named)
    });
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
        RuntimeError::engine(format!("remove the files of box {id}"), error)
    };
    removed
        .await
        .map_err(|error| failed(error.into()))?
        .map_err(|error| failed(error.into()))
}

/// The box goes first: snapshots without one are dropped when the engine is opened.
fn erase_box(folders: &Folders, id: &BoxId) -> io::Result<()> {
    let files = folders.set_aside(&folders.of_box(id))?;
    fault::point("remove.box");
    let snapshots = folders.set_aside(&folders.snapshots_of(id))?;
    fault::point("remove.snapshots");
    files.erase()?;
    snapshots.erase()
}

async fn end(engine: &Engine, id: &BoxId, grace: Duration) -> Result<(), RuntimeError> {
    if let Some((_, pidfd)) = engine.folders.first_process(id) {
        if grace.is_zero() {
            // Before it is thawed, so that nothing of it runs once more.
            signal(&pidfd, Signal::KILL)
                .map_err(|error| RuntimeError::engine(format!("stop box {id}"), error))?;
        }
        // What is frozen hears no signal; on cgroup v1 not even SIGKILL.
        freeze::let_go(engine, id).await?;
        end_process(&pidfd, grace)
            .await
            .map_err(|error| RuntimeError::engine(format!("stop box {id}"), error))?;
    }
    engine.disk.forget(id).await;
    clear_after(engine, id).await
}

/// When the first process of a pid namespace has ended, so has all the rest (`pid_namespaces(7)`).
async fn end_process(pidfd: &OwnedFd, grace: Duration) -> io::Result<()> {
    let watched = sys::watch(pidfd.as_fd())?;
    if !grace.is_zero() {
        signal(pidfd, Signal::TERM)?;
        if let Ok(ended) = tokio::time::timeout(grace, watched.readable()).await {
            drop(ended?);
            return Ok(());
        }
    }
    signal(pidfd, Signal::KILL)?;
    let ended = tokio::time::timeout(KILL_WAIT, watched.readable()).await;
    drop(ended.map_err(|_| io::Error::from(Errno::TIMEDOUT))??);
    Ok(())
}

fn signal(pidfd: &OwnedFd, signal: Signal) -> io::Result<()> {
    match pidfd_send_signal(pidfd, signal) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Removes what a box that does not run may have left outside: its run folder and its cgroups.
pub(crate) async fn clear_after(engine: &Engine, id: &BoxId) -> Result<(), RuntimeError> {
    pool::let_go(engine, id).await?;
    let running = engine.folders.of_running(id);
    if !running.exists() {
        return Ok(());
    }
    let failed = |error| RuntimeError::engine(format!("clear up after box {id}"), error);
    engine
        .spawner
        .ask(Request::Forget { id: *id })
        .await
        .map_err(|error| RuntimeError::engine(format!("clear up after box {id}"), error))?;
    // Last, so that a host that dies here does it again.
    match std::fs::remove_dir_all(&running) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}
