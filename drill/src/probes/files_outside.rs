//! Files of the machine and of the sibling.

use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "files-outside",
    claim: "no file of the machine, of the host or of another box can be opened",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let facts = stage.facts();
    let database = format!("{}/box.db", facts.data_dir);
    let through_proc = format!("/proc/1/root/../../..{database}");
    let through_cwd = format!("/workspace/../../../../../..{database}");
    let attacks = stage.attempts(
        Place::Target,
        &[
            &["open", &database],
            &["open", &through_proc],
            &["open", &through_cwd],
            &["open", &facts.program_outside],
            &["open", &facts.sibling_workspace],
        ],
    )?;
    let controls = stage.attempts(
        Place::Outside,
        &[
            &["open", &database],
            &["open", &facts.program_outside],
            &["open", &facts.sibling_workspace],
        ],
    )?;
    Ok(Finding::judge(&attacks, &controls))
}
