//! The limit on CPU time.

use super::neighbour::{BEST_EFFORT, beside_the_sibling};
use crate::{Answer, Attempt, Finding, Place, Probe, Stage, StageError};
use std::time::Duration;

pub(super) const PROBE: Probe = Probe {
    name: "limit-cpu",
    claim: "four busy loops get no more CPU than the limit, and the neighbour answers meanwhile",
    attempt,
};

const SPIN_MS: &str = "1500";
const SPIN_OUTSIDE_MS: &str = "1000";
const SPIN_TIME_MAX: Duration = Duration::from_secs(30);
/// Enough to see that computing is seen, however busy the machine is.
const SPIN_SEEN_MS: u64 = 20;
/// Periods of the limit do not end with the loops, so some more is no offence.
const TOLERANCE_PERCENT: u64 = 160;

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let facts = stage.facts();
    if facts.limits_held_by == BEST_EFFORT {
        return Ok(Finding::not_applicable(
            "without a cgroup nothing holds a box's share of the processors",
        ));
    }
    let spin = format!("{} spin {SPIN_MS}", facts.program_inside);
    let four = format!("for loop in 1 2 3 4; do {spin} & done; wait");
    let (ran, neighbour) = beside_the_sibling(stage, || {
        stage.run(Place::Target, &["sh", "-c", &four], SPIN_TIME_MAX)
    })?;
    let used_ms: u64 = ran
        .stdout
        .lines()
        .filter_map(|line| cpu_ms(&Answer::of_line(line).ok()?))
        .sum();
    let wall_ms = u64::try_from(ran.took.as_millis()).unwrap_or(u64::MAX);
    let may_ms = wall_ms * u64::from(facts.limits.cpu_milli) / 1000;
    let attacks = [Attempt {
        what: "spin beyond the limit".to_owned(),
        worked: used_ms == 0 || used_ms * 100 > may_ms * TOLERANCE_PERCENT,
        saw: format!("{used_ms} ms used, {may_ms} ms allowed"),
    }];
    let outside = stage.act(Place::Outside, &["spin", SPIN_OUTSIDE_MS])?;
    let controls = [
        Attempt {
            what: "spin outside".to_owned(),
            worked: cpu_ms(&outside).is_some_and(|used_ms| used_ms > SPIN_SEEN_MS),
            saw: outside.to_string(),
        },
        neighbour,
    ];
    Ok(Finding::judge(&attacks, &controls))
}

fn cpu_ms(answer: &Answer) -> Option<u64> {
    answer.word("cpu")?.parse().ok()
}
