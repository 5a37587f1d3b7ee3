//! What /proc and /sys tell of the machine.

use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "machine-facts",
    claim: "where the kernel and its memory lie, and what devices the machine has, is not told",
    attempt,
};

const FILES: &[&[&str]] = &[
    &["pagemap"],
    &["read", "/proc/kpageflags"],
    &["read", "/proc/vmallocinfo"],
    &["read", "/proc/slabinfo"],
    &["list", "/sys/kernel"],
    &["list", "/sys/class/net"],
    &["list", "/sys/devices/system"],
];
/// They are there for everybody; to those who may not know they show zeros for addresses.
const ADDRESSES: [&str; 2] = ["/proc/kallsyms", "/proc/iomem"];
const THERE_MIN: usize = 5;

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let looks: Vec<(&str, String)> = ADDRESSES
        .iter()
        .map(|file| {
            let line = format!("grep -qv '^ *0*\\(-0*\\)\\? ' {file} 2>/dev/null");
            (*file, line)
        })
        .collect();
    let mut attacks = stage.attempts(Place::Target, FILES)?;
    let mut controls = stage.attempts(Place::Outside, FILES)?;
    for (_, line) in &looks {
        attacks.push(stage.shell_attempt(Place::Target, line)?);
        controls.push(stage.shell_attempt(Place::Outside, line)?);
    }
    // A kernel may lack some of them.
    if controls.iter().filter(|control| control.worked).count() >= THERE_MIN {
        controls.retain(|control| control.worked);
    }
    Ok(Finding::judge(&attacks, &controls))
}
