//! UDP, which carries QUIC and other people's name servers.

use crate::{Attempt, Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "udp",
    claim: "no UDP packet leaves: QUIC, other name servers, IPv6",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let internet = &stage.facts().internet;
    let addresses = [
        format!("{}:53", internet.v4),
        format!("{}:443", internet.v4),
        format!("[{}]:53", internet.v6),
        format!("[{}]:443", internet.v6),
    ];
    let ask = |place: Place| -> Result<Vec<Attempt>, StageError> {
        addresses
            .iter()
            .map(|address| stage.attempt(place, &["connect", "udp", address, "700"]))
            .collect()
    };
    Ok(Finding::judge(&ask(Place::Target)?, &ask(Place::Outside)?))
}
