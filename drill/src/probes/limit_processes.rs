//! The limit on processes.

use super::neighbour::{Limit, run_into};
use crate::Probe;

pub(super) const PROBE: Probe = Probe {
    name: "limit-processes",
    claim: "a fork bomb stops at the limit, and the neighbour answers meanwhile",
    attempt: |stage| {
        run_into(
            stage,
            &Limit {
                beyond: &["fork-until-fail", "4096"],
                below: &["fork-until-fail", "16"],
            },
        )
    },
};
