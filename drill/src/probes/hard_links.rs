//! Second names for files of others.

use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "hard-links",
    claim: "no second name can be given to a file of the image or of the host",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let made = stage.shell_attempt(Place::Target, "echo mine > /workspace/drill-own")?;
    let attacks = stage.attempts(
        Place::Target,
        &[
            &["link", "/usr/bin/env", "/workspace/drill-link"],
            &["link", "/opt/box/bin/box-probe", "/workspace/drill-link"],
            &["link", "/opt/box/bin/box-probe", "/tmp/drill-link"],
            &["link", "/proc/self/exe", "/workspace/drill-link"],
            &["link", "/etc/resolv.conf", "/workspace/drill-link"],
        ],
    )?;
    let controls = [
        made,
        stage.attempt(
            Place::Target,
            &["link", "/workspace/drill-own", "/workspace/drill-link"],
        )?,
    ];
    Ok(Finding::judge(&attacks, &controls))
}
