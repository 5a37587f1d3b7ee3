//! Mounts.

use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "mounts",
    claim: "nothing can be mounted, unmounted or made the root",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let attacks = stage.attempts(
        Place::Target,
        &[
            &["mount", "none", "/tmp", "tmpfs"],
            &["mount", "none", "/proc", "proc"],
            &["bind-mount", "/tmp", "/proc"],
            &["umount", "/proc"],
            &["umount", "/opt/box/bin"],
            &["fsopen", "tmpfs"],
            &["open-tree", "/"],
            &["pivot-root", "/workspace", "/workspace"],
        ],
    )?;
    let folder = &stage.facts().data_dir;
    let controls = stage.attempts(
        Place::Outside,
        &[
            &["mount", "none", folder, "tmpfs"],
            &["bind-mount", "/tmp", folder],
            &["fsopen", "tmpfs"],
            &["open-tree", folder],
        ],
    )?;
    Ok(Finding::judge(&attacks, &controls))
}
