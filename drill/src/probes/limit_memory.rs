//! The limit on memory.

use super::neighbour::{Limit, run_into};
use crate::Probe;

pub(super) const PROBE: Probe = Probe {
    name: "limit-memory",
    claim: "memory ends at the limit, and the neighbour answers meanwhile",
    attempt: |stage| {
        run_into(
            stage,
            &Limit {
                beyond: &["memory-until-fail", "2048"],
                below: &["memory-until-fail", "32"],
            },
        )
    },
};
