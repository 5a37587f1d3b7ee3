//! `Search`: what was said and done, by words.

use crate::problem;
use box_api::Problem;
use box_api::control::Outcome;
use box_api::search::SearchAsk;
use box_core::Host;
use box_core::caller::Caller;
use box_core::search;

pub(super) async fn handle(
    host: &Host,
    caller: &Caller,
    asked: SearchAsk,
) -> Result<Outcome, Problem> {
    let found = search::search(host, caller, asked).await;
    found.map(Outcome::Found).map_err(problem::search)
}
