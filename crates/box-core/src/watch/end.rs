//! Why a box ended that nobody stopped.

use crate::boxes::BoxRecord;
use crate::events::{self, size};
use crate::host::Host;
use box_api::control::EventKind;

/// Finds out, notes it among the box's events, and says it in a line for the box's row.
pub(crate) async fn why_ended(host: &Host, record: &BoxRecord) -> Option<String> {
    let limiter = host.runtime_of(record).ok()?.limiter()?;
    let ended = limiter.ended(&record.id).await?;
    let out_of_memory = ended.killed && ended.out_of_memory > 0;
    let (kind, text) = if out_of_memory {
        let limit = size(record.limits.memory_bytes);
        let text = format!(
            "it ended: all of its {limit} of memory was in use, and its first process was killed"
        );
        (EventKind::OutOfMemory, text)
    } else {
        (EventKind::Ended, "it ended without being asked".to_owned())
    };
    events::try_note(host, record.id, kind, text.clone()).await;
    out_of_memory.then_some(text)
}
