//! `Expose`, `ExposedRemove`, `ExposedList`: ports of boxes on this machine's loopback.

use crate::problem;
use box_api::control::Outcome;
use box_api::{BoxName, Problem};
use box_core::Host;
use box_core::caller::Caller;
use box_core::expose;
use std::sync::Arc;

pub(super) async fn add(
    host: &Arc<Host>,
    caller: &Caller,
    name: &BoxName,
    (port, host_port): (u16, Option<u16>),
) -> Result<Outcome, Problem> {
    let exposed = expose::expose(host, caller, name, port, host_port)
        .await
        .map_err(problem::expose)?;
    Ok(Outcome::Exposed {
        ports: vec![exposed],
    })
}

pub(super) async fn remove(
    host: &Host,
    caller: &Caller,
    name: &BoxName,
    port: u16,
) -> Result<Outcome, Problem> {
    let removed = expose::remove(host, caller, name, port).await;
    removed.map(|()| Outcome::Nothing).map_err(problem::expose)
}

pub(super) async fn list(
    host: &Host,
    caller: &Caller,
    name: Option<&BoxName>,
) -> Result<Outcome, Problem> {
    let ports = expose::list(host, caller, name)
        .await
        .map_err(problem::expose)?;
    Ok(Outcome::Exposed { ports })
}
