//! What the machine serves to itself.

use crate::{Attempt, Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "machine-loopback",
    claim: "no service on the machine's own loopback can be reached",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let addresses = ["127.0.0.1:7778", "[::1]:7778", "[::ffff:127.0.0.1]:7778"];
    let reach = |place: Place| -> Result<Vec<Attempt>, StageError> {
        addresses
            .iter()
            .map(|address| stage.attempt(place, &["connect", "tcp", address, "1000"]))
            .collect()
    };
    Ok(Finding::judge(
        &reach(Place::Target)?,
        &reach(Place::Outside)?,
    ))
}
