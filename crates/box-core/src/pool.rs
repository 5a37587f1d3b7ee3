//! Spares: boxes begun ahead of their time, so that `new` has less to do.
//!
//! How many is a matter of use: none until an image has had a second box within the hour, then one
//! fewer than it had, up to the setting `pool.max`; none at all while the machine is short of memory.
//! A spare has no image, no profile, no owner and no name; what it will be is said when it is taken.

mod memory;
mod uses;

use crate::boxes::{self, BoxRecord};
use crate::host::Host;
use box_api::BoxId;
use memory::Memory;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::MissedTickBehavior;
use uses::Uses;

/// How often it is seen whether there are too many.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// The spares of the default engine, and what they are for.
#[derive(Debug, Default)]
pub struct Pool {
    known: Mutex<Known>,
    /// Held by the one who makes them more or fewer.
    tending: Mutex<()>,
}

#[derive(Debug, Default)]
struct Known {
    uses: Uses,
    /// The one that was begun first goes first.
    spares: VecDeque<BoxId>,
}

impl Pool {
    /// One to be made a box of, if there is one; nobody else gets it.
    pub(crate) async fn take(&self) -> Option<BoxId> {
        self.known.lock().await.spares.pop_front()
    }

    /// How many there are.
    pub async fn count(&self) -> usize {
        self.known.lock().await.spares.len()
    }

    /// An image has gone, or its name stands for another: what it was used for says nothing any more.
    pub(crate) async fn forget_image(&self, digest: &str) {
        self.known.lock().await.uses.forget(digest);
    }
}

/// A box was made of an image: there may be a use for more spares. They are begun in the background.
pub(crate) async fn used(host: &Arc<Host>, record: &BoxRecord) {
    let now_ms = host.now_ms();
    let digest = record.image_digest.clone();
    host.pool
        .known
        .lock()
        .await
        .uses
        .add(now_ms, digest, record.profile);
    let host = Arc::clone(host);
    tokio::spawn(async move { tend(&host).await });
}

/// One that was taken for a box that did not come about.
pub(crate) async fn drop_one(host: &Host, id: BoxId) {
    let Some(pool) = host.runtimes.default().pool() else {
        return;
    };
    if let Err(error) = pool.let_go(&id).await {
        tracing::warn!(%id, why = boxes::reason(&error), "a spare is left until the host ends");
    }
}

/// Tends the pool for as long as the host lives.
pub async fn run(host: Arc<Host>) {
    let mut ticks = tokio::time::interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        tend(&host).await;
    }
}

/// Makes the spares as many as there is a use for. One that is at it already is enough.
pub async fn tend(host: &Host) {
    let Some(pool) = host.runtimes.default().pool() else {
        return;
    };
    let Ok(_tending) = host.pool.tending.try_lock() else {
        return;
    };
    loop {
        let memory = Memory::now().await;
        let wanted = if memory.is_short(host.settings.pool_reserve_bytes.value) {
            0
        } else {
            let most = host.settings.pool_max.value as usize;
            let mut known = host.pool.known.lock().await;
            known.uses.wanted(host.now_ms()).min(most)
        };
        let (count, last) = {
            let mut known = host.pool.known.lock().await;
            let count = known.spares.len();
            let too_many = count > wanted;
            (count, too_many.then(|| known.spares.pop_back()).flatten())
        };
        if let Some(id) = last {
            drop_one(host, id).await;
            continue;
        }
        if count >= wanted {
            return;
        }
        let id = host.random.box_id();
        if let Err(error) = pool.begin(&id).await {
            tracing::warn!(why = boxes::reason(&error), "no box is begun ahead");
            return;
        }
        host.pool.known.lock().await.spares.push_back(id);
    }
}
