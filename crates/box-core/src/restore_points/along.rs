//! A copy of a snapshot brings the conversations along.

use super::rows;
use crate::boxes::BoxRecord;
use crate::host::Host;
use crate::store::{Durability, StoreError};
use crate::thread::{self, Along};
use box_api::{BoxId, Label, ThreadId};

/// Most threads that come along, so that the change of the tables stays small.
const THREADS_MAX: usize = 50;

/// Copies the threads of `source`, as they were when the snapshot was taken, into the box that was
/// made of it. They can be read there, and the next prompt goes on from where they were.
pub(crate) async fn bring_along(
    host: &Host,
    source: BoxId,
    label: &Label,
    to: &BoxRecord,
) -> Result<(), StoreError> {
    let noted = label.clone();
    let stood = host
        .store
        .read(move |tables| rows::stood(tables, &source, &noted));
    // One that was taken when nobody wrote that down brings none.
    let stood = stood.await?.unwrap_or_default();
    for one in stood.into_iter().take(THREADS_MAX) {
        let along = Along {
            box_id: to.id,
            owner: to.owner,
            thread: ThreadId::from_random(host.random.bytes()),
        };
        let copied = host.store.write(Durability::Prompt, move |tables| {
            thread::bring_along(tables, &one, &along)
        });
        copied.await?;
    }
    Ok(())
}
