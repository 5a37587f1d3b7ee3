//! `KillProcess`: ends a durable process, or sends it a signal.

use crate::problem;
use box_api::Problem;
use box_api::control::{KillProcess, Outcome};
use box_core::Host;
use box_core::caller::Caller;
use box_core::processes;

pub(super) async fn handle(
    host: &Host,
    caller: &Caller,
    asked: KillProcess,
) -> Result<Outcome, Problem> {
    let ended = processes::kill(host, caller, asked).await;
    ended.map(|()| Outcome::Nothing).map_err(problem::process)
}
