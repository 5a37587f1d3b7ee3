//! Folders every program of one machine shares.

use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "shared-folders",
    claim: "what is put into /tmp, /dev/shm or /run is seen in that box only",
    attempt,
};

const MARKS: [&str; 2] = ["/tmp/drill-shared", "/dev/shm/drill-shared"];

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    for mark in MARKS {
        stage.shell(Place::Target, &format!("echo mine > {mark}"))?;
    }
    let acts = MARKS.map(|mark| ["open", mark]);
    let acts: Vec<&[&str]> = acts.iter().map(<[&str; 2]>::as_slice).collect();
    let attacks = [
        stage.attempts(Place::Sibling, &acts)?,
        stage.attempts(Place::Outside, &acts)?,
    ];
    let controls = stage.attempts(Place::Target, &acts)?;
    Ok(Finding::judge(&attacks.concat(), &controls))
}
