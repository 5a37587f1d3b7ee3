//! What goes wrong with threads, besides running them.

use super::{agent, attach, hinted, prompt, run, store, thread, told};
use box_api::Problem;
use box_api::ProblemKind::{Failed, Refused, Usage};
use box_api::control::RECORDED_BYTES_MAX;
use box_core::thread::{ActError, ActFailure, ForkError, TakeInError};

/// A conversation that was recorded elsewhere.
pub(crate) fn take_in(error: TakeInError) -> Problem {
    match error {
        TakeInError::Run(error) => run(error),
        TakeInError::Recorded(error) => told(Usage, "no-conversation", &error),
    }
}

pub(crate) fn recorded_too_large(file: &str) -> Problem {
    let title = format!("`{file}` is larger than {} MiB", RECORDED_BYTES_MAX >> 20);
    Problem::new(Usage, "no-conversation", title)
}

pub(crate) fn act(error: ActError) -> Problem {
    match error {
        ActError::Thread(error) => thread(error),
        ActError::Prompt(error) => prompt(error),
        ActError::Title => told(Usage, "bad-title", &error),
        ActError::Options => told(Usage, "bad-option", &error),
        ActError::Failed { ref why, .. } => {
            let hint = why.hint();
            let (kind, slug) = match why {
                ActFailure::QueueFull => (Refused, "too-many-prompts"),
                ActFailure::NotQueued(_) => (Failed, "prompt-not-queued"),
                ActFailure::Choose(_) => (Usage, "bad-option"),
                ActFailure::NoTask(_) => (Failed, "task-not-found"),
                ActFailure::NoStop => (Refused, "task-not-stoppable"),
            };
            hinted(told(kind, slug, &error), hint)
        }
    }
}

pub(crate) fn fork(error: ForkError) -> Problem {
    let hint = error.hint();
    match error {
        ForkError::Attach(error) => attach(error),
        ForkError::Agent(error) => agent(error),
        ForkError::Act(error) => act(error),
        ForkError::Store(error) => store(error),
        ForkError::Cannot(_) => hinted(told(Refused, "agent-cannot-fork", &error), hint),
        ForkError::Nothing(_) => hinted(told(Refused, "nothing-to-fork", &error), hint),
    }
}
