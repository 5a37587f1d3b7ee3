//! `ModelUsage`: what models cost.

use crate::problem;
use box_api::Problem;
use box_api::budget::UsageAsk;
use box_api::control::Outcome;
use box_core::Host;
use box_core::budget;
use box_core::caller::Caller;

pub(super) async fn handle(
    host: &Host,
    caller: &Caller,
    asked: UsageAsk,
) -> Result<Outcome, Problem> {
    let usage = budget::usage(host, caller, asked).await;
    usage.map(Outcome::ModelUsage).map_err(problem::find)
}
