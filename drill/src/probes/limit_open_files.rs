//! The limit on open files.

use super::neighbour::{Limit, run_into};
use crate::Probe;

pub(super) const PROBE: Probe = Probe {
    name: "limit-open-files",
    claim: "a process opens no more files than its limit, and the neighbour answers meanwhile",
    attempt: |stage| {
        run_into(
            stage,
            &Limit {
                beyond: &["open-until-fail", "100000"],
                below: &["open-until-fail", "32"],
            },
        )
    },
};
