//! The network's own settings.

use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "network-settings",
    claim: "no interface, socket option or setting of the network can be changed beyond a program's own sockets",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let acts: &[&[&str]] = &[
        &["interface-flags"],
        &["socket-option", "mark"],
        &["socket-option", "transparent"],
        &["socket-option", "force-buffer"],
        &["write", "/proc/sys/net/ipv4/ip_unprivileged_port_start"],
        &["write", "/proc/sys/net/ipv4/conf/lo/forwarding"],
    ];
    Ok(Finding::judge(
        &stage.attempts(Place::Target, acts)?,
        &stage.attempts(Place::Outside, acts)?,
    ))
}
