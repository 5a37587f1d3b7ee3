//! Who may work on a box: whoever moved its row into a state of work.

use crate::boxes::rows::{self, StateChange};
use crate::boxes::{self, BoxRecord};
use crate::host::Host;
use crate::store::{Durability, StoreError};
use box_api::BoxId;
use box_api::control::BoxState;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// Longest a recipe waits for another one that works on the same box.
const WAIT_MAX: Duration = Duration::from_secs(90);

/// Tells waiting recipes that some box's row has changed, and keeps apart those that work on one box.
#[derive(Debug)]
pub struct Changes {
    rows: watch::Sender<u64>,
    held: watch::Sender<BTreeSet<BoxId>>,
}

impl Default for Changes {
    fn default() -> Self {
        Self {
            rows: watch::channel(0).0,
            held: watch::channel(BTreeSet::new()).0,
        }
    }
}

impl Changes {
    /// Wakes everyone who waits for a row.
    pub fn tell(&self) {
        self.rows.send_modify(|count| *count += 1);
    }

    /// A receiver that is woken by every change from now on.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.rows.subscribe()
    }

    /// Waits until nobody holds the box, then holds it.
    async fn hold(&self, id: BoxId) -> Held {
        let mut changes = self.held.subscribe();
        while !self.held.send_if_modified(|held| held.insert(id)) {
            // The sender is ours, so it is there.
            drop(changes.changed().await);
        }
        Held {
            id,
            held: self.held.clone(),
        }
    }
}

/// A box no recipe begins to work on as long as this lives; its state is whatever it was.
#[derive(Debug)]
pub(crate) struct Held {
    id: BoxId,
    held: watch::Sender<BTreeSet<BoxId>>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.held.send_modify(|held| {
            held.remove(&self.id);
        });
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

/// What came of wanting a box to stay as it is.
#[derive(Debug)]
pub(super) enum Still {
    /// It is in one of the states asked for, and stays in it but for ending by itself.
    Held(Held, BoxRecord),
    Gone,
    /// As [`Claim::Busy`].
    Busy(BoxRecord),
}

/// Holds a box in one of the states `among`; waits while another recipe works on it.
pub(super) async fn hold_still(
    host: &Host,
    id: BoxId,
    among: &[BoxState],
) -> Result<Still, StoreError> {
    let deadline = Instant::now() + WAIT_MAX;
    loop {
        // Before reading the row: a change between the two would be missed.
        let mut changes = host.changes.watch();
        let held = timeout_at(deadline, host.changes.hold(id)).await;
        let Some(record) = boxes::get(host, id).await? else {
            return Ok(Still::Gone);
        };
        let Ok(held) = held else {
            return Ok(Still::Busy(record));
        };
        if among.contains(&record.state) {
            return Ok(Still::Held(held, record));
        }
        drop(held);
        if record.state == BoxState::Trashed {
            return Ok(Still::Gone);
        }
        if timeout_at(deadline, changes.changed()).await.is_err() {
            return Ok(Still::Busy(record));
        }
    }
}

/// Holds a box whose row says that it runs.
pub(crate) async fn hold_running(
    host: &Host,
    id: BoxId,
) -> Result<Option<(Held, BoxRecord)>, StoreError> {
    match hold_still(host, id, &[BoxState::Running]).await? {
        Still::Held(held, record) => Ok(Some((held, record))),
        Still::Gone | Still::Busy(_) => Ok(None),
    }
}

/// Claims a box; waits while another recipe works on it.
pub(super) async fn claim(host: &Host, id: BoxId, wish: Wish) -> Result<Claim, StoreError> {
    let among = [wish.from, wish.done].concat();
    loop {
        let (_held, record) = match hold_still(host, id, &among).await? {
            Still::Held(held, record) => (held, record),
            Still::Gone => return Ok(Claim::Gone),
            Still::Busy(record) => return Ok(Claim::Busy(record)),
        };
        if wish.done.contains(&record.state) {
            return Ok(Claim::Already(record));
        }
        // It may have ended by itself just now.
        if move_state(host, &record, wish.into).await? {
            return Ok(Claim::Taken(record));
        }
    }
}

/// Moves a row on, unless somebody else has; answers whether it did.
pub(crate) async fn move_state(
    host: &Host,
    record: &BoxRecord,
    into: BoxState,
) -> Result<bool, StoreError> {
    move_state_because(host, record, into, None).await
}

/// As [`move_state`], saying why.
pub(crate) async fn move_state_because(
    host: &Host,
    record: &BoxRecord,
    into: BoxState,
    problem: Option<String>,
) -> Result<bool, StoreError> {
    let (id, from, at_ms) = (record.id, record.state, host.now_ms());
    let moved = host.store.write(Durability::Prompt, move |transaction| {
        rows::move_state(
            transaction,
            &id,
            &[from],
            StateChange {
                state: into,
                problem: problem.as_deref(),
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
