//! Running into a limit while the sibling must stay responsive.

use crate::{Answer, Attempt, Finding, Place, Stage, StageError};
use std::thread;
use std::time::Duration;

/// A neighbour that answers later than this starves.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);

/// A limit: an act that goes beyond it and the same act well below.
pub(super) struct Limit<'a> {
    pub(super) beyond: &'a [&'a str],
    pub(super) below: &'a [&'a str],
}

/// Holds when the act beyond is refused, the one below works, and the sibling answers meanwhile.
pub(super) fn run_into(stage: &dyn Stage, limit: &Limit<'_>) -> Result<Finding, StageError> {
    let (beyond, neighbour) = beside_the_sibling(stage, || stage.act(Place::Target, limit.beyond))?;
    let attacks = [attempt(limit.beyond, &beyond)];
    let controls = [stage.attempt(Place::Target, limit.below)?, neighbour];
    Ok(Finding::judge(&attacks, &controls))
}

pub(super) fn attempt(words: &[&str], answer: &Answer) -> Attempt {
    Attempt {
        what: words.join(" "),
        worked: answer.is_ok(),
        saw: answer.to_string(),
    }
}

/// Does something in the target and keeps asking the sibling until it is done.
pub(super) fn beside_the_sibling<T: Send>(
    stage: &dyn Stage,
    act: impl FnOnce() -> Result<T, StageError> + Send,
) -> Result<(T, Attempt), StageError> {
    thread::scope(|scope| {
        let acting = scope.spawn(act);
        let mut slowest = Duration::ZERO;
        let mut answered = true;
        loop {
            let ran = stage.run(Place::Sibling, &["true"], ANSWER_TIME_MAX)?;
            slowest = slowest.max(ran.took);
            answered &= ran.code == 0;
            if acting.is_finished() {
                break;
            }
        }
        let done = acting.join().map_err(|_| StageError {
            what: "act in the target".to_owned(),
            why: "it panicked".to_owned(),
        })??;
        let neighbour = Attempt {
            what: "ask the neighbour meanwhile".to_owned(),
            worked: answered && slowest < ANSWER_TIME_MAX,
            saw: format!("slowest answer {} ms", slowest.as_millis()),
        };
        Ok((done, neighbour))
    })
}
