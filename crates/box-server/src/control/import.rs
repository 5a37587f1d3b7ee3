//! `Import`: makes a box of an archive the client writes into a pipe.

use super::client::Client;
use super::export::pipe;
use super::info;
use crate::problem;
use box_api::Problem;
use box_api::control::{Import, Outcome};
use box_core::Host;
use box_core::caller::Caller;
use box_core::lifecycle;
use std::sync::Arc;

pub(super) async fn handle(
    host: &Arc<Host>,
    caller: &Caller,
    client: &Client,
    asked: Import,
) -> Result<Outcome, Problem> {
    let (ours, theirs) = pipe().map_err(problem::pipe)?;
    client.streams(&[theirs]).await.map_err(problem::client)?;
    let made = client
        .with_progress(|progress| lifecycle::import(host, caller, (asked, ours), progress))
        .await;
    info::of(host, &made.map_err(problem::import)?).await
}
