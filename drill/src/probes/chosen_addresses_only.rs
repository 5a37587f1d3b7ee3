//! Addresses, past every name.

use crate::{Attempt, Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "chosen-addresses-only",
    claim: "no address can be reached: public, private, metadata, the machine's own, IPv4 or IPv6",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let internet = &stage.facts().internet;
    let addresses = [
        format!("{}:443", internet.v4),
        format!("{}:80", internet.v4),
        format!("[{}]:443", internet.v6),
        format!("[::ffff:{}]:443", internet.v4),
        format!("{}:7777", internet.host_v4),
        "169.254.169.254:80".to_owned(),
        "10.0.0.1:80".to_owned(),
        "172.17.0.1:80".to_owned(),
        "192.168.1.1:80".to_owned(),
    ];
    let reach = |place: Place| -> Result<Vec<Attempt>, StageError> {
        addresses
            .iter()
            .map(|address| stage.attempt(place, &["connect", "tcp", address, "2000"]))
            .collect()
    };
    Ok(Finding::judge(
        &reach(Place::Target)?,
        &reach(Place::Outside)?,
    ))
}
