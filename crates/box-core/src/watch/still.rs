//! `freeze` and `thaw` as a person asks for them, and the freeze of a box that is idle.

use super::touch::{Pulse, Still, set_still, thaw_engine};
use crate::boxes::{self, BoxRecord};
use crate::events;
use crate::host::Host;
use box_api::BoxName;
use box_api::control::{BoxState, EventKind};
use box_runtime::RuntimeError;

/// Why a box was not frozen or thawed.
#[derive(Debug, thiserror::Error)]
pub enum StillError {
    #[error("box `{name}` is {}", boxes::state_word(*state))]
    NotRunning { name: BoxName, state: BoxState },
    #[error("box `{name}` cannot be frozen on this machine")]
    Unable { name: BoxName },
    #[error("could not {verb} box `{name}`")]
    Engine {
        verb: &'static str,
        name: BoxName,
        #[source]
        source: RuntimeError,
    },
}

/// Stops everything in a box until it is thawed or touched. Frozen already: nothing to do.
///
/// # Errors
/// [`StillError`]
pub async fn freeze(host: &Host, record: &BoxRecord) -> Result<(), StillError> {
    must_run(record)?;
    let pulse = host.touches.of(record.id, host.now_ms()).await;
    let mut still = pulse.still.lock().await;
    if *still != Still::No {
        return Ok(());
    }
    freeze_engine(host, record).await?;
    set_still(host, record.id, &mut still, Still::Yes).await;
    events::try_note(host, record.id, EventKind::Frozen, "somebody asked for it").await;
    Ok(())
}

/// Freezes a box for what it did: only its owner's own word lets it go on, no touch.
///
/// # Errors
/// [`StillError`]
pub(crate) async fn freeze_for(
    host: &Host,
    record: &BoxRecord,
    why: &str,
) -> Result<(), StillError> {
    must_run(record)?;
    let pulse = host.touches.of(record.id, host.now_ms()).await;
    let mut still = pulse.still.lock().await;
    match *still {
        Still::Kept => return Ok(()),
        Still::Yes => {}
        Still::No => freeze_engine(host, record).await?,
    }
    set_still(host, record.id, &mut still, Still::Kept).await;
    events::try_note(host, record.id, EventKind::Frozen, why).await;
    Ok(())
}

/// Lets a box go on. One that is not frozen is left as it is.
///
/// # Errors
/// [`StillError`]
pub async fn thaw(host: &Host, record: &BoxRecord) -> Result<(), StillError> {
    must_run(record)?;
    let now_ms = host.now_ms();
    let pulse = host.touches.of(record.id, now_ms).await;
    let mut still = pulse.still.lock().await;
    // Asked for even when the host does not know of a freeze: it is harmless, and helps a box that
    // somebody else has frozen.
    let runtime = host.runtime_of(record).map_err(engine("thaw", record))?;
    thaw_engine(&**runtime, &record.id)
        .await
        .map_err(engine("thaw", record))?;
    pulse.beat(now_ms);
    if *still != Still::No {
        set_still(host, record.id, &mut still, Still::No).await;
        events::try_note(host, record.id, EventKind::Thawed, "somebody asked for it").await;
    }
    Ok(())
}

/// Freezes a box that is idle, unless somebody touches it at this very moment.
pub(super) async fn freeze_idle(
    host: &Host,
    record: &BoxRecord,
    pulse: &Pulse,
    idle_ms: u64,
) -> Result<(), StillError> {
    // Not waited for: it is being copied, or touched.
    let Ok(mut still) = pulse.still.try_lock() else {
        return Ok(());
    };
    // Whoever touches it holds it before it asks whether it is frozen.
    if pulse.is_held() || *still != Still::No {
        return Ok(());
    }
    freeze_engine(host, record).await?;
    set_still(host, record.id, &mut still, Still::Yes).await;
    let text = format!("it was idle for {}", events::span(idle_ms));
    events::try_note(host, record.id, EventKind::Frozen, text).await;
    Ok(())
}

async fn freeze_engine(host: &Host, record: &BoxRecord) -> Result<(), StillError> {
    let runtime = host.runtime_of(record).map_err(engine("freeze", record))?;
    let freezer = runtime.freezer().ok_or_else(|| StillError::Unable {
        name: record.name.clone(),
    })?;
    freezer
        .freeze(&record.id)
        .await
        .map_err(engine("freeze", record))
}

fn must_run(record: &BoxRecord) -> Result<(), StillError> {
    if record.state == BoxState::Running {
        Ok(())
    } else {
        Err(StillError::NotRunning {
            name: record.name.clone(),
            state: record.state,
        })
    }
}

fn engine<'a>(
    verb: &'static str,
    record: &'a BoxRecord,
) -> impl Fn(RuntimeError) -> StillError + use<'a> {
    move |source| StillError::Engine {
        verb,
        name: record.name.clone(),
        source,
    }
}
