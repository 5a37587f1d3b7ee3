//! What is hidden or read-only.

use super::{EVERYTHING, attempts};
use crate::{Finding, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "nested-masks",
    claim: "what is hidden or read-only in the box is so in a container too, and cannot be uncovered there",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let mut attacks = attempts(
        stage,
        EVERYTHING,
        &[
            &["umount", "/proc/kcore"],
            &["umount", "/proc/keys"],
            &["umount", "/proc/sys"],
            &["umount", "/proc"],
            &["umount", "/opt/box/bin"],
            &["remount-writable", "/proc/sys"],
            &["mount-setattr", "/proc/sys"],
            &["remount-writable", "/opt/box/bin"],
            &["mount-setattr", "/opt/box/bin"],
            &["write", "/proc/sys/kernel/shmmax"],
            &["write", "/proc/sys/user/max_net_namespaces"],
            &["write", "/proc/sys/net/ipv4/ip_forward"],
            &["write", "/opt/box/bin/box-guest"],
        ],
    )?;
    // A copy of a part would be without what lies over it.
    attacks.extend(attempts(stage, "mnt", &[&["bind-mount", "/proc", "/tmp"]])?);
    let controls = attempts(
        stage,
        EVERYTHING,
        &[
            &["mount", "none", "/tmp", "tmpfs"],
            &["bind-mount", "/workspace", "/tmp"],
            &["read", "/proc/self/status"],
        ],
    )?;
    Ok(Finding::judge(&attacks, &controls))
}
