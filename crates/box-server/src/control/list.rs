//! `List`: the caller's boxes.

use super::info;
use crate::problem;
use box_api::Problem;
use box_api::control::Outcome;
use box_core::Host;
use box_core::boxes;
use box_core::caller::Caller;

pub(super) async fn handle(host: &Host, caller: &Caller) -> Result<Outcome, Problem> {
    let records = boxes::list(host, caller).await.map_err(problem::store)?;
    Ok(Outcome::Boxes {
        boxes: info::all(host, &records).await?,
    })
}
