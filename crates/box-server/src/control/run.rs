//! `Run`: sets an agent to work and shows its turn.

use super::client::Client;
use super::conversation::{self, Until};
use super::pieces;
use crate::problem;
use box_api::Problem;
use box_api::control::{Outcome, Reply, Run};
use box_api::thread::Cursor;
use box_core::Host;
use box_core::caller::Caller;
use box_core::thread;
use std::sync::Arc;

pub(super) async fn handle(
    host: &Arc<Host>,
    caller: &Caller,
    client: &mut Client,
    asked: Run,
) -> Result<Outcome, Problem> {
    let files = pieces::attachments(client, &asked.attachments).await?;
    let running = client
        .with_progress(|progress| thread::run_with(host, caller, (asked, files), progress))
        .await
        .map_err(problem::run)?;
    let thread = Reply::Thread {
        box_id: running.record.id,
        name: running.record.name.clone(),
        thread: running.handle.thread(),
    };
    client.reply(&thread).await.map_err(problem::client)?;
    let updates = running.handle.subscribe(Cursor::default());
    conversation::show(
        host,
        caller,
        client,
        (running.handle, updates),
        Until::TurnEnds,
    )
    .await
}
