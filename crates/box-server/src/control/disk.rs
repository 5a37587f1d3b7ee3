//! `DiskUsage`: how much disk boxes use.

use super::target;
use crate::problem;
use box_api::Problem;
use box_api::control::{Outcome, Target};
use box_core::Host;
use box_core::caller::Caller;
use box_core::lifecycle;

pub(super) async fn handle(
    host: &Host,
    caller: &Caller,
    asked: &Target,
) -> Result<Outcome, Problem> {
    let (mut boxes, mut problems) = (Vec::new(), Vec::new());
    for record in target::boxes_of(host, caller, asked).await? {
        match lifecycle::disk_usage(host, &record).await {
            Ok(used) => boxes.push(used),
            Err(error) => problems.push(problem::disk(error)),
        }
    }
    target::whole(problems)?;
    Ok(Outcome::DiskUsage { boxes })
}
