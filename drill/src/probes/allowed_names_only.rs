//! Names nobody allowed lead nowhere.

use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "allowed-names-only",
    claim: "a name nobody allowed cannot be reached, by http, https, the proxy or with another name's address",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let internet = &stage.facts().internet;
    let (allowed, refused) = (&internet.allowed_name, &internet.refused_name);
    let fetch = |options: &str, url: &str| {
        stage.shell_attempt(
            Place::Target,
            &format!("curl --silent --insecure --fail --max-time 5 {options} {url}"),
        )
    };
    let attacks = [
        fetch("--noproxy '*'", &format!("http://{refused}/"))?,
        fetch("--noproxy '*'", &format!("https://{refused}/"))?,
        fetch(
            "--proxy http://127.0.0.1:3128",
            &format!("http://{refused}/"),
        )?,
        fetch(
            "--proxy http://127.0.0.1:3128",
            &format!("https://{refused}/"),
        )?,
        // The allowed name's address with the refused name's greeting.
        fetch(
            &format!("--noproxy '*' --connect-to {refused}:443:{allowed}:443"),
            &format!("https://{refused}/"),
        )?,
        fetch(
            &format!("--noproxy '*' --header 'host: {refused}'"),
            &format!("http://{allowed}/"),
        )?,
    ];
    let controls = [
        fetch("--noproxy '*'", &format!("http://{allowed}/"))?,
        fetch("--noproxy '*'", &format!("https://{allowed}/"))?,
        fetch(
            "--proxy http://127.0.0.1:3128",
            &format!("http://{allowed}/"),
        )?,
        fetch(
            "--proxy http://127.0.0.1:3128",
            &format!("https://{allowed}/"),
        )?,
    ];
    Ok(Finding::judge(&attacks, &controls))
}
