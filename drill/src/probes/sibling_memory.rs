//! Memory shared by key.

use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "sibling-memory",
    claim: "memory shared by key in another box or on the machine is not found",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let key = &format!("{:x}", 0x6472_0000 + stage.facts().target_pid % 0x1_0000);
    let made = [
        stage.attempt(Place::Sibling, &["shm-make", key])?,
        stage.attempt(Place::Sibling, &["shm-find", key])?,
    ];
    let siblings = [
        stage.attempt(Place::Target, &["shm-find", key])?,
        stage.attempt(Place::Outside, &["shm-find", key])?,
    ];
    let removed = stage.attempt(Place::Sibling, &["shm-remove", key])?;
    let made_outside = stage.attempt(Place::Outside, &["shm-make", key])?;
    let from_target = stage.attempt(Place::Target, &["shm-find", key])?;
    let removed_outside = stage.attempt(Place::Outside, &["shm-remove", key])?;
    let attacks = [&siblings[..], &[from_target]].concat();
    let controls = [&made[..], &[removed, made_outside, removed_outside]].concat();
    Ok(Finding::judge(&attacks, &controls))
}
