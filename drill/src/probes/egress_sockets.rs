//! The sockets through which a box is served.

use crate::{Finding, Place, Probe, Stage, StageError};
use box_api::control::Profile;

pub(super) const PROBE: Probe = Probe {
    name: "egress-sockets",
    claim: "the sockets that lead out cannot be taken, doubled or shadowed",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let mut attacks = stage.attempts(
        Place::Target,
        &[
            &["bind", "udp", "198.18.0.1:53"],
            &["bind", "tcp", "198.18.0.1:53"],
            &["bind", "tcp", "127.0.0.1:3128"],
        ],
    )?;
    if stage.facts().profile == Profile::Locked {
        attacks.extend(stage.attempts(
            Place::Target,
            &[
                &["bind", "tcp", "0.0.0.0:443"],
                &["bind", "udp", "0.0.0.0:53"],
            ],
        )?);
    }
    let controls = stage.attempts(
        Place::Target,
        &[
            &["bind", "tcp", "127.0.0.1:8080"],
            &["bind", "udp", "127.0.0.1:5353"],
        ],
    )?;
    Ok(Finding::judge(&attacks, &controls))
}
