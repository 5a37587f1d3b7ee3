//! Stops every process of a box for a while: by its cgroup, or one by one where there is none.

use crate::cgroup::{Motion, processes};
use crate::spawner::wire::Request;
use crate::sys;
use crate::{Engine, NativeRuntime, to_the_end};
use async_trait::async_trait;
use box_api::BoxId;
use box_runtime::{Freezer, RuntimeError};
use rustix::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long a box may take to stand still: a process that waits for a disk stops after its wait.
const STILL_WAIT: Duration = Duration::from_secs(10);
/// How long one may take that has been told to end.
const ENDING_WAIT: Duration = Duration::from_secs(2);
/// Between looks whether it does; doubled from the first to the longest.
const LOOK_FIRST: Duration = Duration::from_micros(200);
const LOOK_LONGEST: Duration = Duration::from_millis(50);
/// After so many looks in vain it is let go and told anew: the old freezer can stay on its way for
/// ever when processes are born while it looks (cgroup v1, freezer-subsystem.rst; runc does likewise).
const LOOKS_A_TRY: u32 = 12;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

#[async_trait]
impl Freezer for NativeRuntime {
    async fn freeze(&self, id: &BoxId) -> Result<(), RuntimeError> {
        let (engine, id) = (Arc::clone(&self.engine), *id);
        to_the_end(async move { freeze(&engine, &id).await }).await
    }

    async fn thaw(&self, id: &BoxId) -> Result<(), RuntimeError> {
        let (engine, id) = (Arc::clone(&self.engine), *id);
        to_the_end(async move { thaw(&engine, &id).await }).await
    }
}

/// Returns once nothing of the box runs; one that does not come to stand still goes on.
async fn freeze(engine: &Engine, id: &BoxId) -> Result<(), RuntimeError> {
    let _turn = engine.turns.take(id).await;
    let (first, pidfd) = running(engine, id)?;
    let deadline = Instant::now() + STILL_WAIT;
    while Instant::now() < deadline {
        put(engine, id, (Motion::Frozen, &pidfd)).await?;
        let mut pause = LOOK_FIRST;
        for _ in 0..LOOKS_A_TRY {
            match motion(engine, id, first)? {
                Motion::Frozen => return Ok(()),
                Motion::Thawed => sleep(pause).await,
            }
            pause = (pause * 2).min(LOOK_LONGEST);
        }
        put(engine, id, (Motion::Thawed, &pidfd)).await?;
        sleep(BETWEEN_TRIES).await;
    }
    Err(RuntimeError::Refused {
        why: format!(
            "a process of box {id} did not stand still in {} s",
            STILL_WAIT.as_secs()
        ),
        hint: Some("it may be waiting for a slow disk; try again".to_owned()),
    })
}

async fn thaw(engine: &Engine, id: &BoxId) -> Result<(), RuntimeError> {
    let _turn = engine.turns.take(id).await;
    let (_, pidfd) = running(engine, id)?;
    put(engine, id, (Motion::Thawed, &pidfd)).await
}

/// Thaws a box that is about to be ended, if it is frozen. The caller has its turn.
pub(crate) async fn let_go(engine: &Engine, id: &BoxId) -> Result<(), RuntimeError> {
    let Some((first, pidfd)) = engine.folders.first_process(id) else {
        return Ok(());
    };
    match motion(engine, id, first) {
        Ok(Motion::Frozen) => match put(engine, id, (Motion::Thawed, &pidfd)).await {
            // One that is just ending looks as if it stood still, and lets nobody in any more.
            Err(_) if ends_soon(&pidfd).await => Ok(()),
            result => result,
        },
        // It is gone, or nothing keeps it from ending.
        Ok(Motion::Thawed) | Err(_) => Ok(()),
    }
}

async fn ends_soon(pidfd: &OwnedFd) -> bool {
    let Ok(watched) = sys::watch(pidfd.as_fd()) else {
        return false;
    };
    let ended = tokio::time::timeout(ENDING_WAIT, watched.readable()).await;
    ended.is_ok_and(|ended| ended.is_ok())
}

fn running(engine: &Engine, id: &BoxId) -> Result<(u32, OwnedFd), RuntimeError> {
    match engine.folders.first_process(id) {
        Some(found) => Ok(found),
        None if engine.folders.has(id) => Err(RuntimeError::NotRunning(*id)),
        None => Err(RuntimeError::NotFound(*id)),
    }
}

async fn put(
    engine: &Engine,
    id: &BoxId,
    (motion, pidfd): (Motion, &OwnedFd),
) -> Result<(), RuntimeError> {
    let verb = match motion {
        Motion::Frozen => "freeze",
        Motion::Thawed => "thaw",
    };
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
        RuntimeError::engine(format!("{verb} box {id}"), error)
    };
    let pidfd = pidfd.try_clone().map_err(|error| failed(error.into()))?;
    let put = Request::Put {
        id: *id,
        motion,
        pidfd,
    };
    let asked = engine.spawner.ask(put).await;
    asked.map(drop).map_err(|error| failed(error.into()))
}

fn motion(engine: &Engine, id: &BoxId, first: u32) -> Result<Motion, RuntimeError> {
    let cgroups = engine.spawner.cgroups();
    let motion = if cgroups.freezes() {
        cgroups.motion(id)
    } else {
        processes::stands_still(first).map(|still| {
            if still {
                Motion::Frozen
            } else {
                Motion::Thawed
            }
        })
    };
    motion.map_err(|error| RuntimeError::engine(format!("see whether box {id} runs"), error))
}
