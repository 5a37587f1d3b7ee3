//! Who may work on a box: whoever moved its row into a state of work.

use crate::boxes::rows::{self, StateChange};
use crate::boxes::{self, BoxRecord};
use crate::host::Host;
use crate::store::{Durability, StoreError};
use box_api::BoxId;
use box_api::control::BoxState;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// Longest a recipe waits for another one that works on the same box.
const WAIT_MAX: Duration = Duration::from_secs(90);

/// Tells waiting recipes that some box's row has changed.
#[derive(Debug)]
pub struct Changes(watch::Sender<u64>);

impl Default for Changes {
    fn default() -> Self {
        Self(watch::channel(0).0)
    }
}

impl Changes {
    /// Wakes everyone who waits for a row.
    pub fn tell(&self) {
        self.0.send_modify(|count| *count += 1);
    }

    /// A receiver that is woken by every change from now on.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}

/// Which states a recipe begins in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wish {
    pub(super) from: &'static [BoxState],
    pub(super) into: BoxState,
    /// States in which there is nothing to do.
    pub(super) done: &'static [BoxState],
}

/// What came of claiming a box.
#[derive(Debug)]
pub(super) enum Claim {
    /// It is this recipe's; the record is as it was before.
    Taken(BoxRecord),
    /// What was wished holds already.
    Already(BoxRecord),
    /// There is no such box any more.
    Gone,
    /// Another recipe has worked on it for too long, or it is in a state nothing leads out of.
    Busy(BoxRecord),
}

/// Claims a box; waits while another recipe works on it.
pub(super) async fn claim(host: &Host, id: BoxId, wish: Wish) -> Result<Claim, StoreError> {
    let deadline = Instant::now() + WAIT_MAX;
    loop {
        // Before reading the row: a change between the two would be missed.
        let mut changes = host.changes.watch();
        let Some(record) = boxes::get(host, id).await? else {
            return Ok(Claim::Gone);
        };
        if wish.done.contains(&record.state) {
            return Ok(Claim::Already(record));
        }
        if wish.from.contains(&record.state) && move_state(host, &record, wish.into).await? {
            return Ok(Claim::Taken(record));
        }
        if timeout_at(deadline, changes.changed()).await.is_err() {
            return Ok(Claim::Busy(record));
        }
    }
}

/// Moves a row on, unless somebody else has; answers whether it did.
pub(crate) async fn move_state(
    host: &Host,
    record: &BoxRecord,
    into: BoxState,
) -> Result<bool, StoreError> {
    let (id, from, at_ms) = (record.id, record.state, host.now_ms());
    let moved = host.store.write(Durability::Prompt, move |transaction| {
        rows::move_state(
            transaction,
            &id,
            &[from],
            StateChange {
                state: into,
                problem: None,
                at_ms,
            },
        )
    });
    let moved = moved.await?;
    host.changes.tell();
    Ok(moved)
}

/// Ends a recipe's work on a box: its row moves on to `state`.
pub(crate) async fn settle(
    host: &Host,
    id: BoxId,
    state: BoxState,
    problem: Option<String>,
) -> Result<(), StoreError> {
    let at_ms = host.now_ms();
    let settled = host.store.write(Durability::Prompt, move |transaction| {
        let change = StateChange {
            state,
            problem: problem.as_deref(),
            at_ms,
        };
        rows::set_state(transaction, &id, change)
    });
    settled.await?;
    host.changes.tell();
    Ok(())
}
