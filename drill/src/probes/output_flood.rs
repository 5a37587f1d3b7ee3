//! Output without end.

use super::neighbour::beside;
use crate::{Attempt, Finding, Place, Probe, Stage, StageError};
use std::time::Duration;

pub(super) const PROBE: Probe = Probe {
    name: "output-flood",
    claim: "a command that prints without end fills neither the host nor process 1, and the neighbour answers meanwhile",
    attempt,
};

const FLOOD: &[&str] = &["timeout", "1", "cat", "/dev/zero"];
const FLOOD_TIME_MAX: Duration = Duration::from_secs(10);
const GROWN_KIB_MAX: u64 = 64 << 10;

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let facts = stage.facts();
    let watched = [facts.host_pid, facts.target_pid];
    let before = sizes(stage, watched)?;
    let (flood, neighbour) = beside(stage, &["true"], || {
        stage.run(Place::Target, FLOOD, FLOOD_TIME_MAX)
    })?;
    let after = sizes(stage, watched)?;
    let mut attacks = vec![neighbour.reversed()];
    for ((pid, before), after) in watched.iter().zip(before).zip(after) {
        attacks.push(Attempt {
            what: format!("make process {pid} of the machine grow"),
            worked: after > before + GROWN_KIB_MAX,
            saw: format!("from {before} to {after} KiB"),
        });
    }
    let controls = [Attempt {
        what: "print much".to_owned(),
        worked: flood.stdout.len() >= 1 << 20,
        saw: format!("{} bytes kept", flood.stdout.len()),
    }];
    Ok(Finding::judge(&attacks, &controls))
}

/// Memory of two processes of the machine, in KiB.
fn sizes(stage: &dyn Stage, pids: [u32; 2]) -> Result<[u64; 2], StageError> {
    let mut sizes = [0; 2];
    for (size, pid) in sizes.iter_mut().zip(pids) {
        let line = format!("awk '/^VmRSS/ {{ print $2 }}' /proc/{pid}/status");
        let ran = stage.shell(Place::Outside, &line)?;
        *size = ran.stdout.trim().parse().map_err(|_| StageError {
            what: line,
            why: ran.stderr,
        })?;
    }
    Ok(sizes)
}
