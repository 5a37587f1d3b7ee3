//! `Restart`: stops a box and starts it, or all of the caller's that run.

use super::{info, target};
use crate::problem;
use box_api::Problem;
use box_api::control::{BoxState, Outcome, Target};
use box_core::Host;
use box_core::caller::Caller;
use box_core::lifecycle;
use std::sync::Arc;
use std::time::Duration;

pub(super) async fn handle(
    host: &Arc<Host>,
    caller: &Caller,
    asked: Target,
    grace: Duration,
) -> Result<Outcome, Problem> {
    let mut records = target::boxes_of(host, caller, &asked).await?;
    if asked == Target::All {
        records.retain(|record| record.state == BoxState::Running);
    }
    // At once: each has its own grace to wait for.
    let restarts: Vec<_> = records
        .into_iter()
        .map(|record| {
            let host = Arc::clone(host);
            tokio::spawn(async move { lifecycle::restart(&host, record.id, grace).await })
        })
        .collect();
    let (mut restarted, mut problems) = (Vec::new(), Vec::new());
    for restart in restarts {
        match restart.await {
            Ok(Ok(record)) => restarted.push(record),
            Ok(Err(error)) => problems.push(problem::restart(error)),
            Err(error) => problems.push(problem::ending(error)),
        }
    }
    target::whole(problems)?;
    match (&asked, restarted.first()) {
        (Target::Box(_), Some(record)) => info::of(host, record).await,
        (Target::Box(_), None) => Err(problem::gone()),
        (Target::All, _) => Ok(Outcome::Boxes {
            boxes: info::all(host, &restarted).await?,
        }),
    }
}
