//! Memory that stays when its process is gone.

use super::neighbour::{Limit, run_into_cgroup};
use crate::Probe;

pub(super) const PROBE: Probe = Probe {
    name: "limit-shared-memory",
    claim: "memory shared by key (System V) ends at the limit on memory",
    attempt: |stage| {
        run_into_cgroup(
            stage,
            &Limit {
                beyond: &["memory-until-fail", "2048", "shared"],
                below: &["memory-until-fail", "16", "shared"],
            },
        )
    },
};
