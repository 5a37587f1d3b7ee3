//! The limit on files in memory.

use super::neighbour::{Limit, run_into};
use crate::Probe;

pub(super) const PROBE: Probe = Probe {
    name: "limit-tmp",
    claim: "/tmp is full at its limit, and the neighbour answers meanwhile",
    attempt: |stage| {
        run_into(
            stage,
            &Limit {
                beyond: &["file-until-fail", "/tmp/drill-fill", "1024"],
                below: &["file-until-fail", "/tmp/drill-fill", "4"],
            },
        )
    },
};
