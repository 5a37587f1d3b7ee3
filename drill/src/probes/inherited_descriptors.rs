//! What a command is born with.

use crate::{Attempt, Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "inherited-descriptors",
    claim: "a command in a box starts with three descriptors and no more",
    attempt,
};

/// Standard input, output, error, and the folder that is being listed.
const BORN_WITH: &str = "4 entries";

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let look = |place: Place| -> Result<Attempt, StageError> {
        let seen = stage.act(place, &["list", "/proc/self/fd"])?;
        Ok(Attempt {
            what: format!("find a descriptor of others in {place:?}"),
            worked: seen.detail() != Some(BORN_WITH),
            saw: seen.to_string(),
        })
    };
    let attacks = [look(Place::Target)?, look(Place::Sibling)?];
    let program = &stage.facts().program_inside;
    let one_more = stage.shell(
        Place::Target,
        &format!("exec 7</dev/null; {program} list /proc/self/fd"),
    )?;
    let controls = [Attempt {
        what: "see one more descriptor".to_owned(),
        worked: one_more.stdout.contains("5 entries"),
        saw: one_more.stdout,
    }];
    Ok(Finding::judge(&attacks, &controls))
}
