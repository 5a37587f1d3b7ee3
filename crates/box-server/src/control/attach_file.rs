//! `AttachFile`: puts a file where the agent of a box finds it.

use super::client::Client;
use super::pieces;
use crate::problem;
use box_api::Problem;
use box_api::control::{AttachFile, Outcome};
use box_core::caller::Caller;
use box_core::{Host, attachments};
use std::sync::Arc;

pub(super) async fn handle(
    host: &Arc<Host>,
    caller: &Caller,
    client: &mut Client,
    asked: AttachFile,
) -> Result<Outcome, Problem> {
    attachments::check(&asked.file, asked.bytes).map_err(problem::attachment)?;
    let content = pieces::collect(client, asked.bytes).await?;
    let attached = attachments::add(host, caller, &asked.name, (&asked.file, content)).await;
    Ok(Outcome::Attached(attached.map_err(problem::attachment)?))
}
