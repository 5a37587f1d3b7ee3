//! `Rename`: gives a box another name.

use super::info;
use crate::problem;
use box_api::control::Outcome;
use box_api::{BoxName, Problem};
use box_core::Host;
use box_core::caller::Caller;
use box_core::{boxes, lifecycle};

pub(super) async fn handle(
    host: &Host,
    caller: &Caller,
    name: &BoxName,
    to: BoxName,
) -> Result<Outcome, Problem> {
    let record = boxes::find(host, caller, name)
        .await
        .map_err(problem::find)?;
    let renamed = lifecycle::rename(host, record.id, to).await;
    info::of(host, &renamed.map_err(problem::rename)?).await
}
