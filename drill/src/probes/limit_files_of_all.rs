//! Open files of all processes together.

use super::neighbour::beside;
use crate::{Attempt, Finding, Place, Probe, Stage, StageError};

pub(super) const PROBE: Probe = Probe {
    name: "limit-files-of-all",
    claim: "all processes of a box together open no more files than processes times files, and the neighbour opens its own meanwhile",
    attempt,
};

fn attempt(stage: &dyn Stage) -> Result<Finding, StageError> {
    let limits = stage.facts().limits;
    let program = &stage.facts().program_inside;
    let own = format!("{program} open-until-fail 64 | grep -q '\"ok\"'");
    let (bomb, neighbour) = beside(stage, &["sh", "-c", &own], || {
        stage.act(Place::Target, &["files-of-many", "4096", "100000", "1000"])
    })?;
    let opened = bomb
        .word("count")
        .and_then(|count| count.parse::<u64>().ok());
    let most = u64::from(limits.pids) * u64::from(limits.open_files);
    let attacks = [
        neighbour.reversed(),
        Attempt {
            what: format!("open more than {most} files"),
            worked: opened.is_none_or(|opened| opened > most),
            saw: bomb.to_string(),
        },
    ];
    let controls = [
        Attempt {
            what: "open many files".to_owned(),
            worked: opened.is_some_and(|opened| opened > u64::from(limits.open_files)),
            saw: bomb.to_string(),
        },
        stage.shell_attempt(Place::Sibling, &own)?,
    ];
    Ok(Finding::judge(&attacks, &controls))
}
