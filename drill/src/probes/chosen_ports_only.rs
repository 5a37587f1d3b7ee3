//! Ports of an allowed name that nobody allowed.

use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "chosen-ports-only",
    claim: "an allowed name answers at no port but 80 and 443, directly or through the proxy",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let internet = &stage.facts().internet;
    let name = &internet.allowed_name;
    let fetch = |place: Place, options: &str, port: u16| {
        stage.shell_attempt(
            place,
            &format!("curl --silent --fail --max-time 5 {options} http://{name}:{port}/"),
        )
    };
    let attacks = [
        fetch(Place::Target, "--noproxy '*'", 8443)?,
        fetch(Place::Target, "--proxy http://127.0.0.1:3128", 8443)?,
        fetch(
            Place::Target,
            "--proxytunnel --proxy http://127.0.0.1:3128",
            8443,
        )?,
    ];
    let controls = [
        fetch(Place::Target, "--noproxy '*'", 80)?,
        stage.attempt(
            Place::Outside,
            &["connect", "tcp", &format!("{}:8443", internet.v4), "2000"],
        )?,
    ];
    Ok(Finding::judge(&attacks, &controls))
}
