//! A box that stands still for the moment of a copy.

use super::touch::{Still, thaw_engine};
use crate::boxes::BoxRecord;
use crate::host::Host;
use box_api::control::BoxState;
use box_runtime::{RuntimeError, fault};

/// Does `work` with every process of the box stopped, and lets them go on whatever came of it.
/// Whoever touches the box meanwhile waits. One that was frozen before stays so; the caller sees to
/// it that the box is neither started nor stopped.
///
/// # Errors
/// What `work` said, else that the box could not be frozen or thawed.
pub(crate) async fn standing_still<T>(
    host: &Host,
    record: &BoxRecord,
    work: impl Future<Output = Result<T, RuntimeError>>,
) -> Result<T, RuntimeError> {
    let runtime = host.runtime_of(record)?;
    let runs = record.state == BoxState::Running;
    let Some(freezer) = runtime.freezer().filter(|_| runs) else {
        return work.await;
    };
    let pulse = host.touches.of(record.id, host.now_ms()).await;
    let still = pulse.still.lock().await;
    if *still != Still::No {
        return work.await;
    }
    match freezer.freeze(&record.id).await {
        Ok(()) => {}
        // It has ended by itself.
        Err(RuntimeError::NotRunning(_) | RuntimeError::NotFound(_)) => return work.await,
        Err(error) => {
            // Part of it may be frozen.
            if let Err(error) = thaw_engine(&**runtime, &record.id).await {
                tracing::warn!(id = %record.id, %error, "a box may be half frozen");
            }
            return Err(error);
        }
    }
    fault::point("copy.frozen");
    let done = work.await;
    fault::point("copy.done");
    match thaw_engine(&**runtime, &record.id).await {
        Ok(()) => done,
        Err(error) => {
            tracing::error!(id = %record.id, %error, "a box is frozen and cannot be thawed");
            done.and(Err(error))
        }
    }
}
