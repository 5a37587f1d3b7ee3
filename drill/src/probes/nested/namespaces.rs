//! Namespaces of others, and those no container may make.

use super::{EVERYTHING, attempts};
use crate::{Finding, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "nested-namespaces",
    claim: "a container enters no namespace of the box, and makes none of cgroups or time",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let attacks = attempts(
        stage,
        EVERYTHING,
        &[
            &["setns", "/proc/1/ns/net"],
            &["setns", "/proc/1/ns/mnt"],
            &["setns", "/proc/1/ns/user"],
            &["setns", "/proc/1/ns/ipc"],
            &["setns", "/proc/1/ns/uts"],
            &["unshare", "cgroup"],
            &["unshare", "time"],
            &["unshare", "user,cgroup"],
            &["clone3", "cgroup"],
            &["clone3", "user"],
            &["ptrace", "1"],
        ],
    )?;
    let controls = attempts(
        stage,
        EVERYTHING,
        &[
            &["setns", "/proc/self/ns/net"],
            &["unshare", "user"],
            &["unshare", "mnt,net"],
            &["sethostname", "drill"],
        ],
    )?;
    Ok(Finding::judge(&attacks, &controls))
}
