//! The attributes an overlay believes (Documentation/filesystems/overlayfs.rst of the kernel).

use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "overlay-marks",
    claim: "no file can be marked so that an overlay shows another one in its place",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let attacks = stage.attempts(
        Place::Target,
        &[
            &["setxattr", "/workspace", "trusted.overlay.opaque", "y"],
            &["setxattr", "/workspace", "trusted.overlay.redirect", "/etc"],
            &["setxattr", "/tmp", "trusted.overlay.metacopy", ""],
            &["setxattr", "/usr/lib", "trusted.overlay.redirect", "/etc"],
            &["mount", "overlay", "/tmp", "overlay"],
        ],
    )?;
    let folder = &stage.facts().data_dir;
    let controls = [
        stage.attempt(
            Place::Target,
            &["setxattr", "/workspace", "user.drill", "y"],
        )?,
        stage.attempt(
            Place::Outside,
            &["setxattr", folder, "trusted.overlay.opaque", "y"],
        )?,
    ];
    Ok(Finding::judge(&attacks, &controls))
}
