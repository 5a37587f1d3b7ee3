//! `Wait`: until a box is what the client waits for. A client that goes away ends it.

use super::client::Client;
use crate::problem;
use box_api::control::{Awaited, Outcome, WAIT_MS_MAX};
use box_api::{BoxName, Problem};
use box_core::Host;
use box_core::caller::Caller;
use box_core::{boxes, lifecycle};
use std::time::Duration;

pub(super) async fn handle(
    host: &Host,
    caller: &Caller,
    client: &mut Client,
    (name, until, timeout_ms): (BoxName, Awaited, u64),
) -> Result<Outcome, Problem> {
    let record = boxes::find(host, caller, &name)
        .await
        .map_err(problem::find)?;
    let longest = Duration::from_millis(timeout_ms.min(WAIT_MS_MAX));
    let mut wait = std::pin::pin!(lifecycle::wait(host, record.id, until, longest));
    loop {
        tokio::select! {
            reached = &mut wait => {
                let reached = reached.map_err(problem::wait)?;
                return Ok(Outcome::Waited { reached });
            }
            // Nothing can be said to a wait.
            message = client.message() => if message.map_err(problem::client)?.is_none() {
                return Err(problem::client_gone());
            }
        }
    }
}
