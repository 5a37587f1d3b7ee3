//! Changes the limits of a running box, and tells what it uses of them.

use crate::cgroup::{Cgroups, processes};
use crate::spawner::wire::{Answer, Request};
use crate::{Engine, NativeRuntime, to_the_end};
use async_trait::async_trait;
use box_api::BoxId;
use box_api::control::Limits;
use box_runtime::{Ended, LimitName, Limiter, RuntimeError, Usage};
use rustix::io::Errno;
use std::io;
use std::sync::Arc;

const BY_CGROUP: &[LimitName] = &[
    LimitName::Cpu,
    LimitName::Memory,
    LimitName::Pids,
    LimitName::Disk,
];

#[async_trait]
impl Limiter for NativeRuntime {
    fn live(&self) -> &'static [LimitName] {
        live(&self.engine)
    }

    async fn set(&self, id: &BoxId, limits: &Limits) -> Result<(), RuntimeError> {
        let (engine, id, limits) = (Arc::clone(&self.engine), *id, *limits);
        to_the_end(async move { set(&engine, &id, &limits).await }).await
    }

    async fn usage(&self, id: &BoxId) -> Result<Usage, RuntimeError> {
        let (engine, id) = (Arc::clone(&self.engine), *id);
        let read = tokio::task::spawn_blocking(move || usage(&engine, &id)).await;
        read.map_err(|error| RuntimeError::engine("see what a box uses", error))?
    }

    async fn ended(&self, id: &BoxId) -> Option<Ended> {
        ended(&self.engine, id).await
    }
}

/// What a cgroup holds can be changed while the box runs. What each process was born with cannot:
/// raising it takes a right over the whole machine (`CAP_SYS_RESOURCE` of getrlimit(2)).
fn live(engine: &Engine) -> &'static [LimitName] {
    match engine.spawner.cgroups() {
        Cgroups::V2(_) | Cgroups::V1(_) => BY_CGROUP,
        Cgroups::BestEffort => &[LimitName::Disk],
    }
}

async fn set(engine: &Arc<Engine>, id: &BoxId, limits: &Limits) -> Result<(), RuntimeError> {
    let _turn = engine.turns.take(id).await;
    let used = usage(engine, id)?.memory_bytes;
    if !live(engine).contains(&LimitName::Memory) {
        engine.disk.limit(engine, id, limits.disk_bytes).await;
        return Ok(());
    }
    // cgroup v2 would kill what does not fit.
    if used > limits.memory_bytes {
        return Err(RuntimeError::Refused {
            why: format!(
                "the box uses {} MiB of memory, more than {} MiB",
                used >> 20,
                limits.memory_bytes >> 20
            ),
            hint: Some("end something in it first, or stop it".to_owned()),
        });
    }
    let (id, limits) = (*id, *limits);
    let asked = engine.spawner.ask(Request::Limit { id, limits }).await;
    asked.map_err(|error| RuntimeError::engine(format!("change the limits of box {id}"), error))?;
    engine.disk.limit(engine, &id, limits.disk_bytes).await;
    Ok(())
}

fn usage(engine: &Engine, id: &BoxId) -> Result<Usage, RuntimeError> {
    let Some((pid, _)) = engine.folders.first_process(id) else {
        return Err(if engine.folders.has(id) {
            RuntimeError::NotRunning(*id)
        } else {
            RuntimeError::NotFound(*id)
        });
    };
    let used = match engine.spawner.cgroups() {
        Cgroups::BestEffort => processes::usage(pid),
        cgroups @ (Cgroups::V2(_) | Cgroups::V1(_)) => cgroups.usage(id),
    };
    // Without a freezer each process is stopped.
    let used = used.map(|mut usage| {
        if !engine.spawner.cgroups().freezes() {
            usage.frozen = processes::stands_still(pid).unwrap_or(false);
        }
        usage
    });
    used.map_err(|error| {
        if is_absent(&error) {
            // It ended between the two looks.
            RuntimeError::NotRunning(*id)
        } else {
            RuntimeError::engine(format!("see what box {id} uses"), error)
        }
    })
}

/// The counts are in its cgroup still, or the spawner read them before it removed that.
async fn ended(engine: &Engine, id: &BoxId) -> Option<Ended> {
    if engine.folders.first_process(id).is_some() {
        return None;
    }
    let asked = engine.spawner.ask(Request::Last { id: *id }).await;
    if let Ok((Answer::Last { ended: Some(ended) }, _)) = asked {
        return Some(ended);
    }
    let usage = engine.spawner.cgroups().usage(id).ok()?;
    Some(Ended {
        out_of_memory: usage.out_of_memory,
        out_of_processes: usage.out_of_processes,
        killed: true,
    })
}

fn is_absent(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::NOENT | Errno::NODEV | Errno::SRCH))
}
