//! Running into a limit while the sibling must stay responsive.

use crate::{Answer, Attempt, Finding, Place, Stage, StageError};
use std::thread;
use std::time::{Duration, Instant};

/// A neighbour starves that takes so many times as long as it does when nothing is attacked, on the same
/// machine in the same minute; and longer than this, since what is quick anyway may well be slower.
const SLOWER_MAX: u32 = 20;
const ANSWER_TIME_MIN: Duration = Duration::from_secs(5);
/// How often it is asked in peace, before and after.
const ASKED_IN_PEACE: u32 = 3;
/// When an answer is not waited for any more.
const ANSWER_TIME_MAX: Duration = Duration::from_mins(2);

/// What `box info` says where there is no cgroup.
pub(super) const BEST_EFFORT: &str = "best effort";

/// Longest a server runs that a probe needs, and how long it may take to come up.
const SERVER_TIME_MAX: Duration = Duration::from_secs(20);
const UP_TIME_MAX: Duration = Duration::from_secs(10);

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

/// As [`run_into`], for what only a cgroup can hold: where limits are best effort it is told apart from
/// a limit that is broken.
pub(super) fn run_into_cgroup(stage: &dyn Stage, limit: &Limit<'_>) -> Result<Finding, StageError> {
    let finding = run_into(stage, limit)?;
    if finding.is_broken() && stage.facts().limits_held_by == BEST_EFFORT {
        return Ok(Finding::not_applicable(
            "without a cgroup memory is held process by process, and this belongs to none",
        ));
    }
    Ok(finding)
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
    beside(stage, &["true"], act)
}

/// Does something and lets the sibling run a command again and again until it is done. The attempt
/// worked when each ended with 0, and none took far longer than when nothing else is done.
pub(super) fn beside<T: Send>(
    stage: &dyn Stage,
    command: &[&str],
    act: impl FnOnce() -> Result<T, StageError> + Send,
) -> Result<(T, Attempt), StageError> {
    thread::scope(|scope| {
        let before = in_peace(stage, command)?;
        let acting = scope.spawn(act);
        let mut slowest = Duration::ZERO;
        let mut failed = None;
        loop {
            let ran = stage.run(Place::Sibling, command, ANSWER_TIME_MAX)?;
            slowest = slowest.max(ran.took);
            if ran.code != 0 && failed.is_none() {
                failed = Some(format!("{} {}", ran.code, ran.stderr.trim()));
            }
            if acting.is_finished() {
                break;
            }
        }
        let done = acting.join().map_err(|_| panicked())??;
        let peace = before.max(in_peace(stage, command)?);
        let neighbour = Attempt {
            what: "ask the neighbour meanwhile".to_owned(),
            worked: failed.is_none() && slowest < ANSWER_TIME_MIN.max(peace * SLOWER_MAX),
            saw: format!(
                "slowest answer {} ms, {} ms in peace, {}",
                slowest.as_millis(),
                peace.as_millis(),
                failed.as_deref().unwrap_or("all good")
            ),
        };
        Ok((done, neighbour))
    })
}

/// The slowest answer while nothing is attacked.
fn in_peace(stage: &dyn Stage, command: &[&str]) -> Result<Duration, StageError> {
    (0..ASKED_IN_PEACE).try_fold(Duration::ZERO, |slowest, _| {
        let ran = stage.run(Place::Sibling, command, ANSWER_TIME_MAX)?;
        Ok(slowest.max(ran.took))
    })
}

fn panicked() -> StageError {
    StageError {
        what: "act beside the neighbour".to_owned(),
        why: "it panicked".to_owned(),
    }
}

/// Keeps a server running in some place, asks until it answers, and then acts, told how it came up.
pub(super) fn while_it_runs(
    stage: &dyn Stage,
    (place, server): (Place, &[&str]),
    ask: &dyn Fn() -> Result<Attempt, StageError>,
    act: impl FnOnce(Attempt) -> Result<Finding, StageError>,
) -> Result<Finding, StageError> {
    thread::scope(|scope| {
        let serving = scope.spawn(|| stage.run(place, server, SERVER_TIME_MAX));
        let start = Instant::now();
        let mut up = ask()?;
        while !up.worked && start.elapsed() < UP_TIME_MAX && !serving.is_finished() {
            up = ask()?;
        }
        act(up)
    })
}
