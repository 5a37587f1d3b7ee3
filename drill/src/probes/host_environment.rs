//! The environment of the host, and of who speaks to it, stays there.

use super::token_nowhere::find;
use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "host-environment",
    claim: "no variable of the host or of the command that spoke to it is seen in a box",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let facts = stage.facts();
    let (word, host) = (&facts.host_word, facts.host_pid);
    let attacks = [find(stage, "find a word of the host", word)?];
    let controls = [
        find(stage, "find the placeholder", &facts.target_placeholder)?,
        stage.shell_attempt(
            Place::Outside,
            &format!("grep --text --quiet '{word}' /proc/{host}/environ"),
        )?,
    ];
    Ok(Finding::judge(&attacks, &controls))
}
