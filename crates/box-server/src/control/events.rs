//! `Events`: what befell a box.

use crate::problem;
use box_api::control::{EVENTS_PER_BOX_MAX, Outcome};
use box_api::{BoxName, Problem};
use box_core::Host;
use box_core::caller::Caller;
use box_core::{boxes, events};

pub(super) async fn handle(
    host: &Host,
    caller: &Caller,
    name: &BoxName,
) -> Result<Outcome, Problem> {
    let record = boxes::find(host, caller, name)
        .await
        .map_err(problem::find)?;
    let events = events::newest(host, record.id, EVENTS_PER_BOX_MAX)
        .await
        .map_err(problem::store)?;
    Ok(Outcome::Events { events })
}
