//! `wait`: until a box is what somebody waits for.

use crate::boxes;
use crate::host::Host;
use crate::store::StoreError;
use crate::thread;
use box_api::BoxId;
use box_api::control::{Awaited, BoxState};
use box_api::thread::ThreadState;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How often threads are looked at; rows of boxes wake by themselves.
const THREADS_EVERY: Duration = Duration::from_millis(200);

/// Why nobody waits any longer.
#[derive(Debug, thiserror::Error)]
pub enum WaitError {
    #[error("the box is gone")]
    Gone,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Waits until a box is stopped, runs or is idle; answers whether it is.
///
/// # Errors
/// [`WaitError::Gone`] when it is removed meanwhile.
pub async fn wait(
    host: &Host,
    id: BoxId,
    until: Awaited,
    longest: Duration,
) -> Result<bool, WaitError> {
    let deadline = Instant::now() + longest;
    // Before the row is read: a change between the two would be missed.
    let mut changes = host.changes.watch();
    loop {
        changes.borrow_and_update();
        if holds(host, id, until).await? {
            return Ok(true);
        }
        let look_again = match until {
            Awaited::Stopped | Awaited::Running => deadline,
            Awaited::Idle => deadline.min(Instant::now() + THREADS_EVERY),
        };
        let woken = timeout_at(look_again, changes.changed()).await;
        if woken.is_err() && Instant::now() >= deadline {
            return holds(host, id, until).await;
        }
    }
}

async fn holds(host: &Host, id: BoxId, until: Awaited) -> Result<bool, WaitError> {
    let record = boxes::get(host, id).await?;
    let record = record
        .filter(boxes::BoxRecord::is_live)
        .ok_or(WaitError::Gone)?;
    match until {
        Awaited::Stopped => Ok(matches!(record.state, BoxState::Stopped | BoxState::Failed)),
        Awaited::Running => Ok(record.state == BoxState::Running),
        Awaited::Idle => {
            let threads = thread::list(host, id).await?;
            Ok(threads.iter().all(|thread| is_idle(thread.state)))
        }
    }
}

fn is_idle(state: ThreadState) -> bool {
    !state.is_busy()
}
