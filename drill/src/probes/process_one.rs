//! Process 1 of the box.

use crate::{Attempt, Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "process-one",
    claim: "process 1 cannot be read or traced, and no signal from inside ends it",
    attempt,
};

/// Everything that ends a program that does not expect it.
const SIGNALS: &[&str] = &["1", "2", "3", "6", "9", "11", "15", "19"];

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let mut attacks = stage.attempts(
        Place::Target,
        &[
            &["ptrace", "1"],
            &["proc-exe", "1"],
            &["proc-environ", "1"],
            &["proc-mem", "1"],
        ],
    )?;
    for signal in SIGNALS {
        stage.act(Place::Target, &["kill", "1", signal])?;
    }
    let alive = stage.attempt(
        Place::Outside,
        &["kill", &stage.facts().target_pid.to_string(), "0"],
    )?;
    attacks.push(Attempt {
        what: format!("signals {}", SIGNALS.join(" ")),
        worked: !alive.worked,
        saw: "process 1 is gone".to_owned(),
    });
    // The same acts on a process of one's own.
    let own = |act: &str| {
        let program = &stage.facts().program_inside;
        stage.shell_attempt(
            Place::Target,
            &format!("sleep 60 & pid=$!; {program} {act} $pid | grep -q '\"ok\"'; a=$?; kill $pid; exit $a"),
        )
    };
    let signalled = stage.shell_attempt(
        Place::Target,
        "sleep 60 & pid=$!; kill -9 $pid; wait $pid; test $? = 137",
    )?;
    let controls = [
        own("proc-exe")?,
        own("proc-environ")?,
        own("proc-mem")?,
        signalled,
    ];
    Ok(Finding::judge(&attacks, &controls))
}
