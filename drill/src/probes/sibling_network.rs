//! A server in the sibling.

use super::neighbour::while_it_runs;
use crate::{Attempt, Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "sibling-network",
    claim: "a server in another box cannot be reached at any address",
    attempt,
};

const SERVER: &[&str] = &["timeout", "15", "python3", "-m", "http.server", "8009"];
const ADDRESSES: [&str; 5] = [
    "127.0.0.1",
    "198.18.0.1",
    "198.18.0.2",
    "192.0.2.2",
    "10.0.0.1",
];

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let reach = |place: Place, address: &str| {
        stage.attempt(
            place,
            &["connect", "tcp", &format!("{address}:8009"), "1000"],
        )
    };
    while_it_runs(
        stage,
        (Place::Sibling, SERVER),
        &|| reach(Place::Sibling, "127.0.0.1"),
        |up| {
            let attacks = ADDRESSES
                .iter()
                .map(|address| reach(Place::Target, address))
                .collect::<Result<Vec<Attempt>, StageError>>()?;
            let stopped = stage.shell_attempt(Place::Sibling, "pkill -f '[h]ttp.server'")?;
            Ok(Finding::judge(&attacks, &[up, stopped]))
        },
    )
}
