//! File systems that show the machine.

use super::{EVERYTHING, attempts};
use crate::{Finding, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "nested-mounts",
    claim: "a container in the box mounts no `/proc`, `/sys` or cgroups that would show more than the box has",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let mut attacks = Vec::new();
    for kinds in [EVERYTHING, "mnt"] {
        attacks.extend(attempts(
            stage,
            kinds,
            &[
                &["mount", "proc", "/tmp", "proc"],
                &["mount", "sysfs", "/tmp", "sysfs"],
                &["mount", "none", "/tmp", "cgroup"],
                &["mount", "none", "/tmp", "cgroup2"],
                &["mount", "none", "/tmp", "devtmpfs"],
                &["mount", "none", "/tmp", "debugfs"],
                &["mount", "none", "/tmp", "securityfs"],
            ],
        )?);
    }
    let mut controls = attempts(stage, EVERYTHING, &[&["mount", "none", "/tmp", "tmpfs"]])?;
    controls.extend(attempts(
        stage,
        "mnt",
        &[&["bind-mount", "/workspace", "/tmp"]],
    )?);
    Ok(Finding::judge(&attacks, &controls))
}
