//! Files by handle, past every path.

use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "file-handles",
    claim: "no file can be opened by its handle",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let attacks = stage.attempts(
        Place::Target,
        &[&["open-by-handle", "/"], &["open-by-handle", "/workspace"]],
    )?;
    let controls = [stage.attempt(Place::Outside, &["open-by-handle", &stage.facts().data_dir])?];
    Ok(Finding::judge(&attacks, &controls))
}
