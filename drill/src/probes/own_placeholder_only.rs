//! Another box's placeholder, and a credential of the attacker's own, are worth nothing.

use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "own-placeholder-only",
    claim: "another box's placeholder and a foreign credential are refused at the credential's host",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let facts = stage.facts();
    let host = &facts.internet.credential_name;
    let ask = |header: &str| {
        stage.shell_attempt(
            Place::Target,
            &format!(
                "curl --silent --show-error --fail-with-body --max-time 5 --header '{header}' https://{host}/v1/models"
            ),
        )
    };
    let attacks = [
        ask(&format!(
            "authorization: Bearer {}",
            facts.sibling_placeholder
        ))?,
        ask("authorization: Bearer sk-ant-oat01-of-the-attackers-own-account")?,
        ask("x-api-key: sk-ant-api03-of-the-attackers-own-account")?,
    ];
    let controls = [ask(&format!(
        "authorization: Bearer {}",
        facts.target_placeholder
    ))?];
    Ok(Finding::judge(&attacks, &controls))
}
