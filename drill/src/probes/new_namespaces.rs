//! Namespaces of one's own, where new privileges begin.

use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "new-namespaces",
    claim: "no namespace can be made, by unshare or clone3; where containers are allowed, none that is not below a user namespace of its own",
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

/// In a box that may hold containers only those that begin with a user namespace may be made, and two
/// kinds not even so.
const KINDS_WHERE_NESTED: &[&str] = &[
    "mnt",
    "pid",
    "net",
    "ipc",
    "uts",
    "cgroup",
    "time",
    "user,cgroup",
    "user,time",
];

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let kinds = if stage.facts().nested {
        KINDS_WHERE_NESTED
    } else {
        KINDS
    };
    let acts: Vec<[&str; 2]> = kinds
        .iter()
        .flat_map(|kinds| [["unshare", kinds], ["clone3", kinds]])
        .collect();
    let acts: Vec<&[&str]> = acts.iter().map(<[&str; 2]>::as_slice).collect();
    let attacks = stage.attempts(Place::Target, &acts)?;
    let controls = stage.attempts(Place::Outside, &acts)?;
    Ok(Finding::judge(&attacks, &controls))
}
