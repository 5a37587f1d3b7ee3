//! Processes outside the box.

use crate::{Attempt, Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "foreign-processes",
    claim: "no process outside the box can be seen, signalled, traced or read",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let facts = stage.facts();
    let pids = [facts.host_pid, facts.egress_pid, facts.sibling_pid].map(|pid| pid.to_string());
    let look = |place: Place| -> Result<Vec<Attempt>, StageError> {
        let mut seen = Vec::new();
        for pid in &pids {
            seen.extend(stage.attempts(
                place,
                &[
                    &["kill", pid, "0"],
                    &["proc-exe", pid],
                    &["ptrace", pid],
                    &["proc-environ", pid],
                ],
            )?);
        }
        Ok(seen)
    };
    Ok(Finding::judge(
        &look(Place::Target)?,
        &look(Place::Outside)?,
    ))
}
