//! `Set`: changes a box that is there.

use super::info;
use crate::problem;
use box_api::control::{Change, Outcome};
use box_api::{BoxName, Problem};
use box_core::Host;
use box_core::caller::Caller;
use box_core::{boxes, lifecycle};
use std::sync::Arc;

pub(super) async fn handle(
    host: &Arc<Host>,
    caller: &Caller,
    name: &BoxName,
    changes: Vec<Change>,
) -> Result<Outcome, Problem> {
    let record = boxes::find(host, caller, name)
        .await
        .map_err(problem::find)?;
    let set = lifecycle::set(host, record.id, changes)
        .await
        .map_err(problem::set)?;
    let info = info::one(host, &set.record).await?;
    Ok(Outcome::Changed {
        info: Box::new(info),
        later: set.later.into_iter().map(str::to_owned).collect(),
    })
}
