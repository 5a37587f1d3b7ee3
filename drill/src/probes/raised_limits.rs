//! Limits of a process, raised by itself.

use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "raised-limits",
    claim: "no limit of a process can be raised",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let attacks = stage.attempts(
        Place::Target,
        &[
            &["limit", "nofile", "raise"],
            &["limit", "nproc", "raise"],
            &["limit", "core", "raise"],
        ],
    )?;
    let controls = stage.attempts(
        Place::Target,
        &[&["limit", "nofile", "lower"], &["limit", "nproc", "lower"]],
    )?;
    Ok(Finding::judge(&attacks, &controls))
}
