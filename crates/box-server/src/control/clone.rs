//! `Clone`: makes a box of another one's files.

use super::client::Client;
use super::info;
use crate::problem;
use box_api::Problem;
use box_api::control::{CloneBox, Outcome};
use box_core::Host;
use box_core::caller::Caller;
use box_core::lifecycle;
use std::sync::Arc;

pub(super) async fn handle(
    host: &Arc<Host>,
    caller: &Caller,
    client: &Client,
    asked: CloneBox,
) -> Result<Outcome, Problem> {
    let made = client
        .with_progress(|progress| lifecycle::clone(host, caller, asked, progress))
        .await;
    info::of(host, &made.map_err(problem::clone)?).await
}
