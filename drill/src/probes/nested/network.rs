//! A network of a container's own.

use super::{EVERYTHING, attempts};
use crate::{Finding, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "nested-network",
    claim: "a network a container makes leads nowhere, and its root opens no more kinds of sockets there than the box",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let facts = stage.facts();
    let public = format!("{}:443", facts.internet.v4);
    let machine = format!("{}:7777", facts.internet.host_v4);
    let attacks = attempts(
        stage,
        EVERYTHING,
        &[
            &["connect", "tcp", "127.0.0.1:3128", "500"],
            &["connect", "tcp", &public, "500"],
            &["connect", "tcp", &machine, "500"],
            &["resolve", &facts.internet.allowed_name],
            &["unix-connect", &facts.internet.machine_socket],
            &["socket", "packet", "raw", "0"],
            &["socket", "netlink", "raw", "12"],
            &["socket", "netlink", "raw", "6"],
            &["socket", "netlink", "raw", "16"],
            &["socket", "vsock", "stream", "0"],
            &["socket", "xdp", "raw", "0"],
        ],
    )?;
    let controls = [
        attempts(stage, EVERYTHING, &[&["interface-flags"]])?,
        attempts(
            stage,
            "mnt",
            &[&["connect", "tcp", "127.0.0.1:3128", "5000"]],
        )?,
    ];
    Ok(Finding::judge(&attacks, &controls.concat()))
}
