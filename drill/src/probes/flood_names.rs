//! Questions to the way out, as fast as a box can ask.

use super::neighbour::beside;
use crate::{Attempt, Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "flood-names",
    claim: "a box that asks for names without pause does not silence them for its neighbour, and nothing of it goes upstream",
    attempt,
};

const SENT_MIN: u64 = 1000;

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let name = &stage.facts().internet.allowed_name;
    let program = &stage.facts().program_inside;
    let resolve = format!("{program} resolve {name} | grep -q '\"ok\"'");
    let (flood, neighbour) = beside(stage, &["sh", "-c", &resolve], || {
        stage.act(Place::Target, &["flood-names", "198.18.0.1:53", "1000"])
    })?;
    let sent = flood.word("sent").and_then(|sent| sent.parse::<u64>().ok());
    let attacks = [
        neighbour.reversed(),
        Attempt {
            what: "carry a question upstream".to_owned(),
            worked: stage.was_asked_upstream("000000"),
            saw: "the name server was asked".to_owned(),
        },
    ];
    let controls = [
        Attempt {
            what: "ask many questions".to_owned(),
            worked: sent.is_some_and(|sent| sent > SENT_MIN),
            saw: flood.to_string(),
        },
        stage.shell_attempt(Place::Sibling, &resolve)?,
    ];
    Ok(Finding::judge(&attacks, &controls))
}
