//! `Attach`: takes up a thread: what was missed, then what comes.

use super::client::Client;
use super::conversation::{self, Until};
use crate::problem;
use box_api::Problem;
use box_api::control::{Attach, Outcome, Reply};
use box_core::Host;
use box_core::caller::Caller;
use box_core::{boxes, thread};
use std::sync::Arc;

pub(super) async fn handle(
    host: &Arc<Host>,
    caller: &Caller,
    client: &mut Client,
    asked: Attach,
) -> Result<Outcome, Problem> {
    let Attach {
        name,
        thread,
        after,
        follow,
    } = asked;
    let handle = thread::attach(host, caller, &name, thread)
        .await
        .map_err(problem::attach)?;
    let record = boxes::find(host, caller, &name)
        .await
        .map_err(problem::find)?;
    let told = Reply::Thread {
        box_id: record.id,
        name: record.name,
        thread: handle.thread(),
    };
    client.reply(&told).await.map_err(problem::client)?;
    let updates = handle.subscribe(after.unwrap_or_default());
    let until = if follow {
        Until::ClientLeaves
    } else {
        Until::CaughtUp
    };
    conversation::show(host, caller, client, (handle, updates), until).await
}
