//! First in every queue.

use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "priorities",
    claim: "no process is served before others: no priority below 0, no real time, no shield against out-of-memory",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let acts: &[&[&str]] = &[&["nice", "-5"], &["realtime"], &["io-realtime"]];
    let mut attacks = stage.attempts(Place::Target, acts)?;
    attacks.push(stage.attempt(Place::Target, &["put", "/proc/self/oom_score_adj", "-1000"])?);
    let mut controls = stage.attempts(Place::Outside, acts)?;
    controls.push(stage.attempt(Place::Target, &["nice", "5"])?);
    controls.push(stage.attempt(Place::Target, &["put", "/proc/self/oom_score_adj", "1000"])?);
    Ok(Finding::judge(&attacks, &controls))
}
