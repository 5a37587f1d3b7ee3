//! Another root.

use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "chroot",
    claim: "no process changes its root",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let attacks = stage.attempts(
        Place::Target,
        &[
            &["chroot", "/"],
            &["chroot", "/workspace"],
            &["chroot-escape", "/workspace/drill-root"],
        ],
    )?;
    let controls = [stage.attempt(Place::Outside, &["chroot", &stage.facts().data_dir])?];
    Ok(Finding::judge(&attacks, &controls))
}
