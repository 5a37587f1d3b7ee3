//! The maps that say who is who.

use crate::{Finding, Place, Probe, Stage, StageError};
use box_api::control::Profile;

pub(super) const PROBE: Probe = Probe {
    name: "id-maps",
    claim: "no map of ids can be written, and no file can be given to an id outside the box's range",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let made = stage.shell_attempt(Place::Target, "touch /workspace/drill-owned")?;
    let attacks = stage.attempts(
        Place::Target,
        &[
            &["put", "/proc/self/uid_map", "0 0 4294967295"],
            &["put", "/proc/self/gid_map", "0 0 4294967295"],
            &["put", "/proc/self/setgroups", "allow"],
            &["put", "/proc/1/uid_map", "0 0 4294967295"],
            &["chown", "/workspace/drill-owned", "70000", "70000"],
        ],
    )?;
    let own = match stage.facts().profile {
        Profile::Locked => "1020",
        Profile::Root if stage.facts().one_id => "0",
        Profile::Root => "33",
    };
    let controls = [
        made,
        stage.attempt(
            Place::Target,
            &["chown", "/workspace/drill-owned", own, own],
        )?,
        stage.attempt(
            Place::Outside,
            &["chown", &stage.facts().program_outside, "70000", "70000"],
        )?,
    ];
    Ok(Finding::judge(&attacks, &controls))
}
