//! Mounts made writable again.

use crate::{Finding, Place, Probe, Stage, StageError};
use box_api::control::Profile;

pub(super) const PROBE: Probe = Probe {
    name: "remounts",
    claim: "what is mounted read-only stays so",
    attempt,
};

const ACTS: [&str; 2] = ["remount-writable", "mount-setattr"];

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let mut attacks = Vec::new();
    for point in ["/opt/box/bin", "/proc/sys", "/proc/sysrq-trigger", "/dev"] {
        for act in ACTS {
            attacks.push(stage.attempt(Place::Target, &[act, point])?);
        }
    }
    if stage.facts().profile == Profile::Locked {
        for act in ACTS {
            attacks.push(stage.attempt(Place::Target, &[act, "/"])?);
        }
    }
    let controls = [
        stage.attempt(Place::Outside, &["remount-writable", "/proc"])?,
        stage.attempt(Place::Outside, &["mount-setattr", "/proc"])?,
    ];
    Ok(Finding::judge(&attacks, &controls))
}
