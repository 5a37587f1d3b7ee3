//! The limit on disk.

use super::neighbour::beside_the_sibling;
use super::spare::Spare;
use crate::{Attempt, Finding, Place, Probe, Stage, StageError};
use std::time::Duration;

pub(super) const PROBE: Probe = Probe {
    name: "limit-disk",
    claim: "a box that fills its disk is stopped soon after its limit, says so, and the neighbour answers meanwhile",
    attempt,
};

const BOX: &str = "full";
const LIMIT: &str = "64M";
/// As much again as what a fast disk takes until the box is looked at.
const BEYOND_MIB: &str = "2048";
/// A box that stands still does not answer any more.
const FILL_TIME_MAX: Duration = Duration::from_secs(4);

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let program = &stage.facts().program_inside;
    let (full, made) = Spare::new(stage, BOX, &["--disk", LIMIT])?;
    let below = full.attempt(&format!(
        "{program} file-until-fail /workspace/below 16 | grep -q '\"ok\"'"
    ))?;
    let beyond = [
        "exec",
        BOX,
        "--",
        program,
        "file-until-fail",
        "/workspace/fill",
        BEYOND_MIB,
    ];
    let (filled, neighbour) =
        beside_the_sibling(stage, || stage.run(Place::Verb, &beyond, FILL_TIME_MAX))?;
    let info = stage.run(Place::Verb, &["info", BOX], FILL_TIME_MAX)?;
    let attacks = [
        Attempt {
            what: format!("write {BEYOND_MIB} MiB into a box of {LIMIT}"),
            worked: filled.stdout.contains("\"ok\""),
            saw: filled.stdout.trim().to_owned(),
        },
        neighbour.reversed(),
    ];
    let controls = [
        made,
        below,
        Attempt {
            what: "be told that the disk is full".to_owned(),
            worked: info.stdout.contains("disk full"),
            saw: info.stdout,
        },
        full.remove()?,
    ];
    Ok(Finding::judge(&attacks, &controls))
}
