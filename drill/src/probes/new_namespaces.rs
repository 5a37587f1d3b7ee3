//! Namespaces of one's own, where new privileges begin.

use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "new-namespaces",
    claim: "no namespace can be made, by unshare or clone3",
    attempt,
};

const KINDS: &[&str] = &[
    "user",
    "mnt",
    "pid",
    "net",
    "ipc",
    "uts",
    "cgroup",
    "time",
    "user,mnt,net",
];

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let acts: Vec<[&str; 2]> = KINDS
        .iter()
        .flat_map(|kinds| [["unshare", kinds], ["clone3", kinds]])
        .collect();
    let acts: Vec<&[&str]> = acts.iter().map(<[&str; 2]>::as_slice).collect();
    let attacks = stage.attempts(Place::Target, &acts)?;
    let controls = stage.attempts(Place::Outside, &acts)?;
    Ok(Finding::judge(&attacks, &controls))
}
