//! Files through which the kernel is set.

use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "kernel-files",
    claim: "no setting of the kernel can be written, and its memory cannot be read",
    attempt,
};

/// A kernel may lack some of them; one that lacks most would make the probe worthless.
const THERE_MIN: usize = 2;

/// Masked files are there and empty, so what counts is a byte.
const BYTE_OF: [&str; 3] = ["/proc/kcore", "/proc/keys", "/proc/timer_list"];

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let acts: &[&[&str]] = &[
        &["write", "/proc/sys/kernel/core_pattern"],
        &["write", "/proc/sys/kernel/modprobe"],
        &["write", "/proc/sys/vm/overcommit_memory"],
        &["write", "/proc/sysrq-trigger"],
    ];
    let mut attacks = stage.attempts(Place::Target, acts)?;
    attacks.push(stage.attempt(Place::Target, &["write", "/sys/kernel/profiling"])?);
    let byte = |place: Place, path: &str| {
        stage.shell_attempt(place, &format!("head -c 1 {path} 2>/dev/null | grep -q ."))
    };
    for path in BYTE_OF {
        attacks.push(byte(Place::Target, path)?);
    }
    let mut controls = stage.attempts(Place::Outside, acts)?;
    if controls.iter().filter(|control| control.worked).count() >= THERE_MIN {
        controls.retain(|control| control.worked);
    }
    controls.push(byte(Place::Target, "/proc/self/status")?);
    controls.push(stage.attempt(Place::Target, &["write", "/proc/self/comm"])?);
    Ok(Finding::judge(&attacks, &controls))
}
