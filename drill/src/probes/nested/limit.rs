//! How many namespaces there may be.

use super::attempts;
use crate::probes::neighbour::beside_the_sibling;
use crate::{Finding, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "nested-limit",
    claim: "a box makes no more networks than its limit, and the neighbour answers meanwhile",
    attempt,
};

const BEYOND: &str = "200";
const BELOW: &str = "4";

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let make = |most: &str| attempts(stage, "net", &[&["networks-until-fail", most]]);
    // First: what a process leaves behind the kernel clears away in its own time.
    let below = make(BELOW)?;
    let (beyond, neighbour) = beside_the_sibling(stage, || make(BEYOND))?;
    Ok(Finding::judge(&beyond, &[below, vec![neighbour]].concat()))
}
