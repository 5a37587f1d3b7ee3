//! The name in the greeting of TLS.

use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "tls-names",
    claim: "TLS without a name, or with another one inside than outside, is refused",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let facts = stage.facts();
    let internet = &facts.internet;
    let (allowed, host) = (&internet.allowed_name, &internet.credential_name);
    let fake = stage.act(Place::Target, &["resolve", allowed])?;
    let fake = fake.detail().unwrap_or("198.18.0.99").to_owned();
    let fake = fake.split_whitespace().next().unwrap_or_default();
    let fetch = |rest: &str| {
        stage.shell_attempt(
            Place::Target,
            &format!("curl --silent --insecure --fail --max-time 5 --noproxy '*' {rest}"),
        )
    };
    let with_credential = |rest: &str| {
        fetch(&format!(
            "--header 'authorization: Bearer {}' {rest}",
            facts.target_placeholder
        ))
    };
    let attacks = [
        // curl names no address in its greeting.
        fetch(&format!("https://{fake}/"))?,
        fetch(&format!("--header 'host: {allowed}' https://{fake}/"))?,
        with_credential(&format!(
            "--header 'host: {}' https://{host}/v1/models",
            internet.refused_name
        ))?,
        with_credential(&format!(
            "--header 'host: {allowed}' https://{host}/v1/models"
        ))?,
    ];
    let controls = [
        fetch(&format!("https://{allowed}/"))?,
        with_credential(&format!("https://{host}/v1/models"))?,
    ];
    Ok(Finding::judge(&attacks, &controls))
}
