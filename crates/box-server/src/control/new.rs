//! `New`: makes a box.

use super::client::Client;
use super::info;
use crate::problem;
use box_api::Problem;
use box_api::control::{NewBox, Outcome};
use box_core::Host;
use box_core::caller::Caller;
use box_core::lifecycle;
use std::sync::Arc;

pub(super) async fn handle(
    host: &Arc<Host>,
    caller: &Caller,
    client: &Client,
    asked: NewBox,
) -> Result<Outcome, Problem> {
    let made = client
        .with_progress(|progress| lifecycle::create(host, caller, asked, progress))
        .await;
    info::of(host, &made.map_err(problem::create)?).await
}
