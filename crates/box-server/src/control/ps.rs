//! `Processes`: the durable processes of a box.

use crate::problem;
use box_api::control::Outcome;
use box_api::{BoxName, Problem};
use box_core::Host;
use box_core::caller::Caller;
use box_core::processes;

pub(super) async fn handle(
    host: &Host,
    caller: &Caller,
    name: &BoxName,
) -> Result<Outcome, Problem> {
    let processes = processes::list(host, caller, name)
        .await
        .map_err(problem::process)?;
    let inside = processes::count(host, caller, name).await;
    Ok(Outcome::Processes { processes, inside })
}
