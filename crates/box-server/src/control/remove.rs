//! `Remove`: removes a box, or all of the caller's, with everything in them.

use super::target;
use crate::problem;
use box_api::Problem;
use box_api::control::{Outcome, Target};
use box_core::Host;
use box_core::caller::Caller;
use box_core::lifecycle;
use std::sync::Arc;

pub(super) async fn handle(
    host: &Arc<Host>,
    caller: &Caller,
    asked: Target,
) -> Result<Outcome, Problem> {
    let mut problems = Vec::new();
    for record in target::boxes_of(host, caller, &asked).await? {
        if let Err(error) = lifecycle::remove(host, record.id).await {
            problems.push(problem::remove(error));
        }
    }
    target::whole(problems)?;
    Ok(Outcome::Nothing)
}
