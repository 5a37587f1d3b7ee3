//! The limit on files that hold nothing.

use super::neighbour::{Limit, run_into};
use crate::Probe;

pub(super) const PROBE: Probe = Probe {
    name: "limit-inodes",
    claim: "empty files in /tmp end at a limit of their own, and the neighbour answers meanwhile",
    attempt: |stage| {
        run_into(
            stage,
            &Limit {
                beyond: &["inodes-until-fail", "/tmp/drill-inodes", "200000"],
                below: &["inodes-until-fail", "/tmp/drill-inodes", "100"],
            },
        )
    },
};
