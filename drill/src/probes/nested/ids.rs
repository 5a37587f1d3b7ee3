//! Ids a container could be given.

use super::attempts;
use crate::{Finding, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "nested-ids",
    claim: "no container is given an id the box does not have",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let attacks = attempts(
        stage,
        "mnt",
        &[
            &["map-ids", "0", "70000", "1"],
            &["map-ids", "0", "65536", "1"],
            &["map-ids", "0", "0", "70000"],
            &["chown", "/workspace", "70000", "70000"],
            &["setuid", "70000"],
        ],
    )?;
    let controls = attempts(
        stage,
        "mnt",
        &[
            &["map-ids", "0", "0", "1"],
            &["map-ids", "5", "1000", "100"],
            &["setuid", "1000"],
        ],
    )?;
    Ok(Finding::judge(&attacks, &controls))
}
