//! Boxes begun ahead of their time; see `launch::spare`.
//!
//! Their processes and cgroups are the spawner's, which clears them away when the host ends. A mark in
//! the run folder says that there is one, so that the next host clears up after a spawner that was
//! killed as well.

use crate::spawner::wire::Request;
use crate::{Engine, NativeRuntime, to_the_end};
use async_trait::async_trait;
use box_api::BoxId;
use box_runtime::{Pool, RuntimeError};
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use tokio::sync::watch;

/// Which ids have one.
#[derive(Debug)]
pub(crate) struct Spares(watch::Sender<BTreeSet<BoxId>>);

impl Default for Spares {
    fn default() -> Self {
        Self(watch::channel(BTreeSet::new()).0)
    }
}

impl Spares {
    pub(crate) fn has(&self, id: &BoxId) -> bool {
        self.0.borrow().contains(id)
    }

    fn insert(&self, id: BoxId) {
        self.0.send_if_modified(|ids| ids.insert(id));
    }

    fn remove(&self, id: &BoxId) -> bool {
        self.0.send_if_modified(|ids| ids.remove(id))
    }
}

#[async_trait]
impl Pool for NativeRuntime {
    async fn begin(&self, id: &BoxId) -> Result<(), RuntimeError> {
        let (engine, id) = (Arc::clone(&self.engine), *id);
        to_the_end(async move { begin(&engine, &id).await }).await
    }

    async fn let_go(&self, id: &BoxId) -> Result<(), RuntimeError> {
        let (engine, id) = (Arc::clone(&self.engine), *id);
        to_the_end(async move {
            let _turn = engine.turns.take(&id).await;
            let_go(&engine, &id).await
        })
        .await
    }

    fn spares(&self) -> Vec<BoxId> {
        self.engine.spares.0.borrow().iter().copied().collect()
    }
}

async fn begin(engine: &Engine, id: &BoxId) -> Result<(), RuntimeError> {
    let _turn = engine.turns.take(id).await;
    if engine.spares.has(id) || engine.folders.has(id) {
        return Err(RuntimeError::Exists(*id));
    }
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
        RuntimeError::engine("begin a box ahead", error)
    };
    // First the mark: whoever comes after a crash knows what to look for.
    std::fs::write(engine.folders.of_spare(id), "").map_err(|error| failed(error.into()))?;
    engine.spares.insert(*id);
    match engine.spawner.ask(Request::Spare { id: *id }).await {
        Ok(_) => Ok(()),
        Err(error) => {
            drop(let_go(engine, id).await);
            Err(failed(error.into()))
        }
    }
}

/// Ends one nobody took. The caller has its turn; there is none: nothing to do.
pub(crate) async fn let_go(engine: &Engine, id: &BoxId) -> Result<(), RuntimeError> {
    if !engine.spares.has(id) {
        return Ok(());
    }
    let asked = engine.spawner.ask(Request::Forget { id: *id }).await;
    asked.map_err(|error| RuntimeError::engine("end a box that was begun ahead", error))?;
    taken(engine, id);
    Ok(())
}

/// It is a box like any other now, or gone.
pub(crate) fn taken(engine: &Engine, id: &BoxId) {
    if engine.spares.remove(id) {
        // A mark that stays is taken away by the next host, which finds a box there or nothing.
        drop(std::fs::remove_file(engine.folders.of_spare(id)));
    }
}

/// Clears up after hosts before this one. What became a box stays.
pub(crate) fn clear(engine: &Engine) -> io::Result<()> {
    for id in engine.folders.spares()? {
        if !engine.folders.has(&id) && engine.folders.first_process(&id).is_none() {
            let removed = engine.spawner.cgroups().remove(&id);
            removed.map_err(|error| io::Error::other(error.to_string()))?;
        }
        std::fs::remove_file(engine.folders.of_spare(&id))?;
    }
    Ok(())
}
