//! A credential never travels unencrypted.

use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "no-plain-credential",
    claim: "the credential's host cannot be reached without TLS",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let facts = stage.facts();
    let host = &facts.internet.credential_name;
    let ask = |scheme: &str, options: &str| {
        stage.shell_attempt(
            Place::Target,
            &format!(
                "curl --silent --show-error --fail-with-body --max-time 5 {options} \
                 --header 'authorization: Bearer {}' {scheme}://{host}/v1/models",
                facts.target_placeholder
            ),
        )
    };
    let attacks = [
        ask("http", "--noproxy '*'")?,
        ask("http", "--proxy http://127.0.0.1:3128")?,
        ask("http", "--proxytunnel --proxy http://127.0.0.1:3128")?,
    ];
    let controls = [ask("https", "--noproxy '*'")?];
    Ok(Finding::judge(&attacks, &controls))
}
