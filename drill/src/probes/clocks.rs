//! Clocks.

use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "clocks",
    claim: "no clock can be set: the machine's, its speed, or the box's own",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let acts: &[&[&str]] = &[&["clock-settime"], &["adjtimex"]];
    let mut attacks = stage.attempts(Place::Target, acts)?;
    attacks.extend(stage.attempts(
        Place::Target,
        &[
            &["put", "/proc/self/timens_offsets", "monotonic 1000 0"],
            &["device", "/dev/rtc0"],
        ],
    )?);
    let controls = stage.attempts(Place::Outside, acts)?;
    Ok(Finding::judge(&attacks, &controls))
}
