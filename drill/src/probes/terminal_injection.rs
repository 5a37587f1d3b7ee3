//! Typing into a terminal from behind.

use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "terminal-injection",
    claim: "nothing can be typed into a terminal by a program (TIOCSTI)",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let attacks = [stage.attempt(Place::Target, &["tiocsti"])?];
    let controls = [stage.attempt(Place::Outside, &["tiocsti"])?];
    Ok(Finding::judge(&attacks, &controls))
}
