//! Devices.

use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "devices",
    claim: "no device but the seven harmless ones can be opened or made",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let attacks = stage.attempts(
        Place::Target,
        &[
            &["device", "/dev/mem"],
            &["device", "/dev/kmsg"],
            &["device", "/dev/kvm"],
            &["device", "/dev/fuse"],
            &["device", "/dev/net/tun"],
            &["device", "/dev/vda"],
            &["device", "/dev/sda"],
            &["mknod", "/workspace/node", "c", "1", "3"],
            &["mknod", "/tmp/node", "b", "254", "0"],
        ],
    )?;
    let node = format!("{}/node", stage.facts().data_dir);
    let controls = [
        stage.attempt(Place::Target, &["device", "/dev/null"])?,
        stage.attempt(Place::Target, &["device", "/dev/ptmx"])?,
        stage.attempt(Place::Outside, &["mknod", &node, "c", "1", "3"])?,
    ];
    Ok(Finding::judge(&attacks, &controls))
}
