//! Namespaces of others.

use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "foreign-namespaces",
    claim: "no other namespace can be entered",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let sibling = stage.facts().sibling_pid;
    let attacks = stage.attempts(
        Place::Target,
        &[
            &["setns", &format!("/proc/{sibling}/ns/net")],
            &["setns", "/proc/1/ns/net"],
            &["setns", "/proc/self/ns/net"],
            &["setns", "/proc/self/ns/mnt"],
        ],
    )?;
    let controls = stage.attempts(
        Place::Outside,
        &[
            &["setns", &format!("/proc/{sibling}/ns/net")],
            &["setns", "/proc/self/ns/net"],
        ],
    )?;
    Ok(Finding::judge(&attacks, &controls))
}
