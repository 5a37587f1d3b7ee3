//! A bomb that nobody can catch: every process starts two and ends.

use super::neighbour::beside;
use crate::{Attempt, Finding, Place, Probe, Stage, StageError};
use std::time::Duration;

pub(super) const PROBE: Probe = Probe {
    name: "fork-bomb",
    claim: "a box full of a bomb leaves its neighbour in peace and can still be removed",
    attempt,
};

const BOX: &str = "bomb";
/// Longer than anybody waits for the box's end.
const BOMB_MS: &str = "120000";
/// Where nothing bounds CPU time, the one process that tells waits for its turn among all the others.
const START_TIME_MAX: Duration = Duration::from_secs(40);

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let words = ["new", BOX, "--net", "locked"];
    let made = stage.verb(&[&words[..], stage.facts().options()].concat())?;
    let program = &stage.facts().program_inside;
    let bomb = ["exec", BOX, "--", program, "fork-bomb", BOMB_MS];
    let ((bombed, removed), neighbour) = beside(stage, &["true"], || {
        let bombed = stage.run(Place::Verb, &bomb, START_TIME_MAX)?;
        // In the middle of it, and it may well find no room.
        stage.run(Place::Verb, &["exec", BOX, "--", "true"], START_TIME_MAX)?;
        Ok((bombed, stage.verb(&["rm", BOX, "--force", "--now"])?))
    })?;
    let attacks = [neighbour.reversed(), removed.reversed()];
    let controls = [
        made,
        Attempt {
            what: "run the bomb until there is no room".to_owned(),
            worked: bombed.stdout.contains("EAGAIN"),
            saw: format!("{} {}", bombed.code, bombed.stdout.trim()),
        },
    ];
    Ok(Finding::judge(&attacks, &controls))
}
