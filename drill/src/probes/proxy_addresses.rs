//! Addresses asked of the proxy.

use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "proxy-addresses",
    claim: "the proxy leads to no address, however it is written, and not to the machine",
    attempt,
};

const PROXY: &str = "--noproxy '' --proxy http://127.0.0.1:3128";

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let internet = &stage.facts().internet;
    let (v4, host) = (&internet.v4, &internet.host_v4);
    let urls = [
        format!("http://{v4}/"),
        format!("https://{v4}/"),
        format!("http://[{}]/", internet.v6),
        format!("http://{host}:7777/"),
        format!("http://{host}/"),
        format!("http://[::ffff:{host}]/"),
        "http://127.0.0.1:7778/".to_owned(),
        "http://0x7f000001:7778/".to_owned(),
        "http://2130706433:7778/".to_owned(),
        "http://017700000001:7778/".to_owned(),
        "http://localhost:7778/".to_owned(),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
    ];
    let fetch = |place: Place, options: &str, url: &str| {
        stage.shell_attempt(
            place,
            &format!("curl --silent --insecure --fail --globoff --max-time 5 {options} '{url}'"),
        )
    };
    let mut attacks = Vec::new();
    for url in &urls {
        attacks.push(fetch(Place::Target, PROXY, url)?);
        attacks.push(fetch(
            Place::Target,
            &format!("--proxytunnel {PROXY}"),
            url,
        )?);
    }
    let controls = [
        fetch(
            Place::Target,
            PROXY,
            &format!("http://{}/", internet.allowed_name),
        )?,
        stage.attempt(
            Place::Outside,
            &["connect", "tcp", &format!("{host}:7777"), "1000"],
        )?,
    ];
    Ok(Finding::judge(&attacks, &controls))
}
