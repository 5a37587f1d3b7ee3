//! Keyrings of the kernel, which no namespace keeps apart.

use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "kernel-keyrings",
    claim: "no key of the kernel's keyrings can be made, asked for or listed",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let acts: &[&[&str]] = &[&["keyctl"], &["add-key"], &["request-key"]];
    let mut attacks = stage.attempts(Place::Target, acts)?;
    let listed = "head -c 1 /proc/keys 2>/dev/null | grep -q .";
    attacks.push(stage.shell_attempt(Place::Target, listed)?);
    let controls = stage.attempts(Place::Outside, acts)?;
    Ok(Finding::judge(&attacks, &controls))
}
