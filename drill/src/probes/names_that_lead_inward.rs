//! Allowed names with addresses nobody may reach.

use crate::{Attempt, Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "names-that-lead-inward",
    claim: "an allowed name that its owner points at the machine, its loopback or a metadata service leads nowhere",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let internet = &stage.facts().internet;
    let fetch = |name: &str, options: &str| {
        stage.shell_attempt(
            Place::Target,
            &format!("curl --silent --fail --max-time 5 {options} http://{name}/"),
        )
    };
    let mut attacks = Vec::new();
    for name in &internet.inward_names {
        attacks.push(fetch(name, "--noproxy '*'")?);
        attacks.push(fetch(name, "--proxy http://127.0.0.1:3128")?);
    }
    let asked = Attempt {
        what: "see that the names were resolved".to_owned(),
        worked: internet
            .inward_names
            .iter()
            .all(|name| stage.was_asked_upstream(name)),
        saw: "not all were asked for".to_owned(),
    };
    let controls = [
        asked,
        fetch(&internet.allowed_name, "--noproxy '*'")?,
        stage.attempt(
            Place::Outside,
            &[
                "connect",
                "tcp",
                &format!("{}:80", internet.host_v4),
                "1000",
            ],
        )?,
    ];
    Ok(Finding::judge(&attacks, &controls))
}
