//! `Spawn`: starts a command that outlives its caller and this host.

use crate::problem;
use box_api::Problem;
use box_api::control::{Outcome, Spawn};
use box_core::Host;
use box_core::caller::Caller;
use box_core::processes;
use std::sync::Arc;

pub(super) async fn handle(
    host: &Arc<Host>,
    caller: &Caller,
    asked: Spawn,
) -> Result<Outcome, Problem> {
    let begun = processes::spawn(host, caller, asked).await;
    begun.map(Outcome::Process).map_err(problem::process)
}
