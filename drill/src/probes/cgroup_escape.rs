//! Out of the group that holds the limits.

use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "cgroup-escape",
    claim: "no cgroup can be seen, mounted, left or told to run a program",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let folder = &stage.facts().data_dir;
    let mut attacks = stage.attempts(
        Place::Target,
        &[
            &["mount", "none", "/tmp", "cgroup"],
            &["mount", "none", "/tmp", "cgroup2"],
            &["put", "/sys/fs/cgroup/cgroup.procs", "0"],
            &["put", "/sys/fs/cgroup/release_agent", "/workspace/agent"],
            &["setns", "/proc/self/ns/cgroup"],
        ],
    )?;
    // Where containers are allowed there is a folder of that name with nothing in it.
    let seen = "ls -d /sys/fs/cgroup/*";
    attacks.push(stage.shell_attempt(Place::Target, seen)?);
    let controls = [
        stage.attempt(Place::Outside, &["mount", "none", folder, "cgroup2"])?,
        stage.attempt(Place::Outside, &["list", "/sys/fs/cgroup"])?,
        stage.attempt(Place::Outside, &["setns", "/proc/self/ns/cgroup"])?,
    ];
    Ok(Finding::judge(&attacks, &controls))
}
