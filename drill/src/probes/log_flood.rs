//! A process nobody watches that prints without end.

use super::neighbour::beside_the_sibling;
use crate::{Attempt, Finding, Place, Probe, Stage, StageError};
use std::time::Duration;

pub(super) const PROBE: Probe = Probe {
    name: "log-flood",
    claim: "what a process left alone prints is kept up to a bound, on the host's disk and in its memory, and the neighbour answers meanwhile",
    attempt,
};

const PROCESS: &str = "flood";
/// Some gigabytes, were they kept.
const FLOOD: [&str; 3] = ["sh", "-c", "timeout 2 cat /dev/zero | tr '\\0' x; sleep 60"];
const KEPT_MIB_MAX: u64 = 256;
const WAIT_TIME_MAX: Duration = Duration::from_secs(10);

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let start = ["exec", "--detach", "--name", PROCESS, "target", "--"];
    let started = stage.verb(&[&start[..], &FLOOD].concat())?;
    let (_, neighbour) = beside_the_sibling(stage, || {
        stage.run(Place::Target, &["sleep", "2"], WAIT_TIME_MAX)
    })?;
    let facts = stage.facts();
    let kept = stage.shell(
        Place::Outside,
        &format!(
            "du --summarize --block-size=M {}/logs | cut -f 1",
            facts.data_dir
        ),
    )?;
    let kept_mib = kept.stdout.trim().trim_end_matches('M').parse::<u64>();
    let line = format!(
        "awk '/^VmRSS/ {{ print int($2 / 1024) }}' /proc/{}/status",
        facts.host_pid
    );
    let held_mib = stage
        .shell(Place::Outside, &line)?
        .stdout
        .trim()
        .parse::<u64>();
    let shown = stage.run(Place::Verb, &["logs", "target", PROCESS], WAIT_TIME_MAX)?;
    let ended = stage.verb(&["kill", "target", PROCESS, "--now"])?;
    let attacks = [
        Attempt {
            what: format!("have more than {KEPT_MIB_MAX} MiB kept"),
            worked: kept_mib.as_ref().map_or(true, |kept| *kept > KEPT_MIB_MAX),
            saw: kept.stdout,
        },
        Attempt {
            what: format!("make the host hold more than {KEPT_MIB_MAX} MiB"),
            worked: held_mib.as_ref().map_or(true, |held| *held > KEPT_MIB_MAX),
            saw: format!("{held_mib:?}"),
        },
        neighbour.reversed(),
    ];
    let controls = [
        started,
        Attempt {
            what: "see what it printed".to_owned(),
            worked: shown.stdout.contains("xxxxxxxx"),
            saw: shown.stderr,
        },
        ended,
    ];
    Ok(Finding::judge(&attacks, &controls))
}
