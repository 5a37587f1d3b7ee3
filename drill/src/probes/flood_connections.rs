//! Connections to the way out, as many as a box can hold.

use super::neighbour::beside;
use crate::{Attempt, Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "flood-connections",
    claim: "a box that holds thousands of connections to the way out does not close it for its neighbour",
    attempt,
};

/// Far more than the way out grants one box.
const FLOOD: [&str; 3] = ["16", "240", "1500"];
const SEEN_MIN: u64 = 200;

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let name = &stage.facts().internet.allowed_name;
    let fetch = format!("curl --silent --fail --max-time 4 --noproxy '*' http://{name}/");
    let answer = stage.act(Place::Target, &["resolve", name])?;
    let address = answer.detail().unwrap_or_default();
    let address = format!("{}:80", address.split(' ').next().unwrap_or_default());
    let [processes, each, ms] = FLOOD;
    let (flood, neighbour) = beside(stage, &["sh", "-c", &fetch], || {
        let words = ["connections-of-many", &address, processes, each, ms];
        stage.act(Place::Target, &words)
    })?;
    let held = flood
        .word("count")
        .and_then(|count| count.parse::<u64>().ok());
    let attacks = [neighbour.reversed()];
    let controls = [
        Attempt {
            what: "hold many connections".to_owned(),
            worked: held.is_some_and(|held| held > SEEN_MIN),
            saw: flood.to_string(),
        },
        stage.shell_attempt(Place::Sibling, &fetch)?,
    ];
    Ok(Finding::judge(&attacks, &controls))
}
