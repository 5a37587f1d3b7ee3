//! `RestorePoints`: what a box can be brought back to, turn by turn.

use crate::problem;
use box_api::control::Outcome;
use box_api::{BoxName, Problem};
use box_core::Host;
use box_core::boxes;
use box_core::caller::Caller;
use box_core::restore_points;

pub(super) async fn handle(
    host: &Host,
    caller: &Caller,
    name: &BoxName,
) -> Result<Outcome, Problem> {
    let record = boxes::find(host, caller, name)
        .await
        .map_err(problem::find)?;
    let listed = restore_points::list(host, &record).await;
    listed
        .map(Outcome::RestorePoints)
        .map_err(problem::snapshot)
}
