//! Kinds of sockets.

use crate::{Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "socket-families",
    claim: "no packet, raw, vsock, crypto, bluetooth, CAN or XDP socket can be made",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let attacks = stage.attempts(
        Place::Target,
        &[
            &["socket", "packet", "raw", "0"],
            &["socket", "packet", "dgram", "0"],
            &["socket", "inet", "raw", "1"],
            &["socket", "inet6", "raw", "58"],
            &["socket", "vsock", "stream", "0"],
            &["socket", "alg", "seqpacket", "0"],
            &["socket", "bluetooth", "raw", "1"],
            &["socket", "can", "raw", "1"],
            &["socket", "xdp", "raw", "0"],
        ],
    )?;
    let mut controls = stage.attempts(
        Place::Target,
        &[
            &["socket", "inet", "stream", "0"],
            &["socket", "inet", "dgram", "0"],
            &["socket", "unix", "stream", "0"],
        ],
    )?;
    controls.push(stage.attempt(Place::Outside, &["socket", "packet", "raw", "0"])?);
    controls.push(stage.attempt(Place::Outside, &["socket", "inet", "raw", "1"])?);
    Ok(Finding::judge(&attacks, &controls))
}
