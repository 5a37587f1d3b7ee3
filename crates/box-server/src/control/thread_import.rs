//! `ThreadImport`: makes a thread of a conversation that an agent recorded elsewhere.

use super::client::Client;
use super::pieces;
use crate::problem;
use box_api::Problem;
use box_api::control::{Outcome, RECORDED_BYTES_MAX, ThreadImport};
use box_core::caller::Caller;
use box_core::{Host, boxes, thread};
use std::sync::Arc;

pub(super) async fn handle(
    host: &Arc<Host>,
    caller: &Caller,
    client: &mut Client,
    asked: ThreadImport,
) -> Result<Outcome, Problem> {
    let ThreadImport { name, file, bytes } = asked;
    if bytes > RECORDED_BYTES_MAX {
        return Err(problem::recorded_too_large(&file));
    }
    // Before it comes over.
    boxes::find(host, caller, &name)
        .await
        .map_err(problem::find)?;
    let content = pieces::collect(client, bytes).await?;
    let taken = client
        .with_progress(|progress| thread::take_in(host, caller, (&name, &file, content), progress))
        .await
        .map_err(problem::take_in)?;
    Ok(Outcome::ThreadImported(taken))
}
