//! `Move`: freezes or thaws a box, or all of the caller's that run.

use super::{info, target};
use crate::problem;
use box_api::Problem;
use box_api::control::{BoxState, Motion, Outcome, Target};
use box_core::Host;
use box_core::caller::Caller;
use box_core::watch;

pub(super) async fn handle(
    host: &Host,
    caller: &Caller,
    asked: Target,
    motion: Motion,
) -> Result<Outcome, Problem> {
    let mut records = target::boxes_of(host, caller, &asked).await?;
    if asked == Target::All {
        records.retain(|record| record.state == BoxState::Running);
    }
    let mut problems = Vec::new();
    for record in &records {
        let done = match motion {
            Motion::Freeze => watch::freeze(host, record).await,
            Motion::Thaw => watch::thaw(host, record).await,
        };
        problems.extend(done.err().map(problem::still));
    }
    target::whole(problems)?;
    match (&asked, records.first()) {
        (Target::Box(_), Some(record)) => info::of(host, record).await,
        (Target::Box(_), None) => Err(problem::gone()),
        (Target::All, _) => Ok(Outcome::Boxes {
            boxes: info::all(host, &records).await?,
        }),
    }
}
