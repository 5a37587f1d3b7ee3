//! The key that signs for intercepted hosts is nowhere in the box.

use super::token_nowhere::find;
use crate::{Finding, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "ca-key-nowhere",
    claim: "no environment, command line or file of a box holds the key certificates are signed with",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let facts = stage.facts();
    let attacks = [find(stage, "find the private key", &facts.ca_key_line)?];
    let controls = [find(
        stage,
        "find the placeholder",
        &facts.target_placeholder,
    )?];
    Ok(Finding::judge(&attacks, &controls))
}
