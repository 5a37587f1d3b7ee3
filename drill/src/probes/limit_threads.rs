//! The limit on threads.

use super::neighbour::{Limit, run_into};
use crate::Probe;

pub(super) const PROBE: Probe = Probe {
    name: "limit-threads",
    claim: "threads count as processes and stop at the same limit, and the neighbour answers meanwhile",
    attempt: |stage| {
        run_into(
            stage,
            &Limit {
                beyond: &["threads-until-fail", "4096"],
                below: &["threads-until-fail", "16"],
            },
        )
    },
};
