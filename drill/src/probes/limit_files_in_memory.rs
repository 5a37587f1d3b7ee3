//! Memory that belongs to no process.

use super::neighbour::{Limit, run_into_cgroup};
use crate::Probe;

pub(super) const PROBE: Probe = Probe {
    name: "limit-files-in-memory",
    claim: "files in memory that belong to no process (memfd) end at the limit on memory",
    attempt: |stage| {
        run_into_cgroup(
            stage,
            &Limit {
                beyond: &["memory-until-fail", "2048", "memfd"],
                below: &["memory-until-fail", "16", "memfd"],
            },
        )
    },
};
