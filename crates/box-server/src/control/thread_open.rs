//! `ThreadOpen`: begins a thread that waits for its first prompt.

use super::client::Client;
use crate::problem;
use box_api::Problem;
use box_api::control::{Outcome, ThreadOpen};
use box_core::caller::Caller;
use box_core::{Host, thread};
use std::sync::Arc;

pub(super) async fn handle(
    host: &Arc<Host>,
    caller: &Caller,
    client: &Client,
    asked: ThreadOpen,
) -> Result<Outcome, Problem> {
    let opened = client
        .with_progress(|progress| thread::open(host, caller, asked, progress))
        .await
        .map_err(problem::run)?;
    Ok(Outcome::Thread {
        thread: opened.handle.thread(),
    })
}
