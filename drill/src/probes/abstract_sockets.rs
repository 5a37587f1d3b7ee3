//! Sockets without a file, which every program of one network finds by name.

use super::neighbour::while_it_runs;
use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "abstract-sockets",
    claim: "no abstract socket of the machine or of another box can be reached",
    attempt,
};

const OF_SIBLING: &str = "@drill-sibling";

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let of_machine = &stage.facts().internet.machine_socket;
    let program = &stage.facts().program_inside;
    let serving = [program, "unix-serve", OF_SIBLING, "800"];
    let connect = |place: Place, name: &str| stage.attempt(place, &["unix-connect", name]);
    while_it_runs(
        stage,
        (Place::Sibling, &serving),
        &|| connect(Place::Sibling, OF_SIBLING),
        |up| {
            let attacks = [
                connect(Place::Target, of_machine)?,
                connect(Place::Target, OF_SIBLING)?,
                connect(Place::Outside, OF_SIBLING)?,
            ];
            let controls = [up, connect(Place::Outside, of_machine)?];
            Ok(Finding::judge(&attacks, &controls))
        },
    )
}
