//! `Start`: starts a box.

use super::info;
use crate::problem;
use box_api::control::Outcome;
use box_api::{BoxName, Problem};
use box_core::Host;
use box_core::caller::Caller;
use box_core::{boxes, lifecycle};
use std::sync::Arc;

pub(super) async fn handle(
    host: &Arc<Host>,
    caller: &Caller,
    name: &BoxName,
) -> Result<Outcome, Problem> {
    let record = boxes::find(host, caller, name)
        .await
        .map_err(problem::find)?;
    let started = lifecycle::start(host, record.id)
        .await
        .map_err(problem::start)?;
    info::of(host, &started).await
}
