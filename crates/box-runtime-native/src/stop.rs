//! Stops a box, and removes one.

use crate::Engine;
use crate::folders::BEING_REMOVED;
use crate::spawner::wire::Request;
use crate::sys;
use box_api::BoxId;
use box_runtime::RuntimeError;
use box_runtime::erase::erase;
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};
use std::io;
use std::path::Path;
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

/// Stops the box without grace and removes its files. Gone already: nothing to do.
pub(crate) async fn remove(engine: &Engine, id: &BoxId) -> Result<(), RuntimeError> {
    let _turn = engine.turns.take(id).await;
    end(engine, id, Duration::ZERO).await?;
    let (folder, tmp, name) = (engine.folders.of_box(id), engine.folders.tmp.clone(), *id);
    let removed = tokio::task::spawn_blocking(move || erase_box(&folder, &tmp, &name)).await;
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
        RuntimeError::engine(format!("remove the files of box {id}"), error)
    };
    removed
        .map_err(|error| failed(error.into()))?
        .map_err(|error| failed(error.into()))
}

/// Renamed first: from then on the box is gone, whatever becomes of the rest.
fn erase_box(folder: &Path, tmp: &Path, id: &BoxId) -> io::Result<()> {
    let mut number = 0u32;
    loop {
        let place = tmp.join(format!("{BEING_REMOVED}-{id}-{number}"));
        let flags = rustix::fs::RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(rustix::fs::CWD, folder, rustix::fs::CWD, &place, flags) {
            Ok(()) => return erase(&place),
            Err(Errno::NOENT) => return Ok(()),
            Err(Errno::EXIST) => number += 1,
            Err(errno) => return Err(errno.into()),
        }
    }
}

async fn end(engine: &Engine, id: &BoxId, grace: Duration) -> Result<(), RuntimeError> {
    if let Some((_, pidfd)) = engine.folders.first_process(id) {
        end_process(&pidfd, grace)
            .await
            .map_err(|error| RuntimeError::engine(format!("stop box {id}"), error))?;
    }
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
