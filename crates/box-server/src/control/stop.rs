//! `Stop`: stops a box, or all of the caller's. Files stay.

use super::{info, target};
use crate::problem;
use box_api::Problem;
use box_api::control::{Outcome, Target};
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
    let records = target::boxes_of(host, caller, &asked).await?;
    // At once: each has its own grace to wait for.
    let stops: Vec<_> = records
        .into_iter()
        .map(|record| {
            let host = Arc::clone(host);
            tokio::spawn(async move { lifecycle::stop(&host, record.id, grace).await })
        })
        .collect();
    let (mut stopped, mut problems) = (Vec::new(), Vec::new());
    for stop in stops {
        match stop.await {
            Ok(Ok(record)) => stopped.push(record),
            Ok(Err(error)) => problems.push(problem::stop(error)),
            Err(error) => problems.push(problem::ending(error)),
        }
    }
    target::whole(problems)?;
    match (&asked, stopped.first()) {
        (Target::Box(_), Some(record)) => info::of(host, record).await,
        (Target::Box(_), None) => Err(problem::gone()),
        (Target::All, _) => Ok(Outcome::Boxes {
            boxes: info::all(host, &stopped).await?,
        }),
    }
}
