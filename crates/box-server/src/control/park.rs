//! `Park` and `Resume`: threads that wait for a time.

use crate::problem;
use box_api::control::{Outcome, Park};
use box_api::{BoxName, Problem, ThreadId};
use box_core::caller::Caller;
use box_core::{Host, parking};
use std::sync::Arc;

pub(super) async fn park(
    host: &Arc<Host>,
    caller: &Caller,
    asked: Park,
) -> Result<Outcome, Problem> {
    let by = caller.owner.to_string();
    let threads = parking::park(host, caller, asked, &by)
        .await
        .map_err(problem::park)?;
    Ok(Outcome::Parking { threads })
}

pub(super) async fn resume(
    host: &Arc<Host>,
    caller: &Caller,
    name: &BoxName,
    thread: Option<ThreadId>,
) -> Result<Outcome, Problem> {
    let by = caller.owner.to_string();
    let threads = parking::resume(host, caller, (name, thread), &by)
        .await
        .map_err(problem::park)?;
    Ok(Outcome::Parking { threads })
}
