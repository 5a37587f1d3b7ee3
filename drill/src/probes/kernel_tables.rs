//! Netlink: firewall, audit, events of devices.

use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "kernel-tables",
    claim: "of the kernel's netlink families only the one that lists addresses can be opened",
    attempt,
};

/// netlink(7): sockets, `IPsec`, audit, netfilter, events of devices, generic, crypto.
const FAMILIES: [&str; 7] = ["4", "6", "9", "12", "15", "16", "21"];
/// A kernel may lack some of them.
const THERE_MIN: usize = 3;

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let acts: Vec<[&str; 4]> = FAMILIES
        .iter()
        .map(|number| ["socket", "netlink", "raw", number])
        .collect();
    let acts: Vec<&[&str]> = acts.iter().map(<[&str; 4]>::as_slice).collect();
    let attacks = stage.attempts(Place::Target, &acts)?;
    let mut controls = stage.attempts(Place::Outside, &acts)?;
    if controls.iter().filter(|control| control.worked).count() >= THERE_MIN {
        controls.retain(|control| control.worked);
    }
    controls.push(stage.attempt(Place::Target, &["socket", "netlink", "raw", "0"])?);
    Ok(Finding::judge(&attacks, &controls))
}
