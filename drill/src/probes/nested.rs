//! Probes of boxes that may hold containers: what a container's own privileges reach.

mod ids;
mod limit;
mod masks;
mod mounts;
mod namespaces;
mod network;

use crate::{Attempt, Place, Probe, Stage, StageError};

pub(crate) const ALL: &[Probe] = &[
    mounts::PROBE,
    masks::PROBE,
    namespaces::PROBE,
    ids::PROBE,
    network::PROBE,
    limit::PROBE,
];

/// Everything a container usually has of its own.
const EVERYTHING: &str = "mnt,pid,net,ipc,uts";

/// Acts in a container, each in one of its own.
fn attempts(stage: &dyn Stage, kinds: &str, acts: &[&[&str]]) -> Result<Vec<Attempt>, StageError> {
    let program = &*stage.facts().program_inside;
    acts.iter()
        .map(|act| stage.attempt(Place::Target, &[&["within", kinds, program], *act].concat()))
        .collect()
}
