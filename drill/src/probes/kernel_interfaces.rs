//! System calls a box has no business with.

use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "kernel-interfaces",
    claim: "bpf, perf, io_uring, keys, userfaultfd, modules, kexec, clocks and the like are refused",
    attempt,
};

const CALLS: &[&[&str]] = &[
    &["bpf"],
    &["perf-event-open"],
    &["io-uring-setup"],
    &["keyctl"],
    &["add-key"],
    &["userfaultfd"],
    &["fanotify-init"],
    &["kexec-load"],
    &["init-module"],
    &["swapon", "/dev/null"],
    &["reboot"],
    &["syslog"],
    &["acct"],
    &["clock-settime"],
    &["iopl"],
    &["personality", "0040000"],
    &["sethostname", "drill"],
];
/// A kernel may lack some of them; one that lacks most would make the probe worthless.
const THERE_MIN: usize = 8;

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let attacks = stage.attempts(Place::Target, CALLS)?;
    let mut controls = stage.attempts(Place::Outside, CALLS)?;
    let there = controls.iter().filter(|control| control.worked).count();
    if there >= THERE_MIN {
        controls.retain(|control| control.worked);
    }
    Ok(Finding::judge(&attacks, &controls))
}
