//! `Start`: starts a box. `StartAll`: every box of the caller.

use super::{info, target};
use crate::problem;
use box_api::control::{Outcome, Target};
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

pub(super) async fn all(host: &Arc<Host>, caller: &Caller) -> Result<Outcome, Problem> {
    let (mut started, mut problems) = (Vec::new(), Vec::new());
    for record in target::boxes_of(host, caller, &Target::All).await? {
        match lifecycle::start(host, record.id).await {
            Ok(record) => started.push(record),
            Err(error) => problems.push(problem::start(error)),
        }
    }
    target::whole(problems)?;
    Ok(Outcome::Boxes {
        boxes: info::all(host, &started).await?,
    })
}
