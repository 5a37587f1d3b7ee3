//! What stops an answer to a decision, and parking.

use super::{attach, find, hinted, store, thread, told};
use box_api::Problem;
use box_api::ProblemKind::{Failed, Usage};
use box_core::decisions::AnswerError;
use box_core::parking::ParkError;

pub(crate) fn answer(error: AnswerError) -> Problem {
    let hint = error.hint();
    match error {
        AnswerError::Thread(error) => thread(error),
        AnswerError::Store(error) => store(error),
        AnswerError::Unknown(_) => told(Failed, "decision-not-found", &error),
        AnswerError::Over { .. } => told(Failed, "decision-over", &error),
        AnswerError::NoSuchOption { .. } => hinted(told(Usage, "no-such-option", &error), hint),
        AnswerError::Ambiguous { .. } => hinted(told(Usage, "several-options", &error), hint),
        AnswerError::IsForm { .. } => hinted(told(Usage, "decision-is-form", &error), hint),
        AnswerError::NoForm { .. } => hinted(told(Usage, "decision-is-no-form", &error), hint),
        AnswerError::Fill { .. } => hinted(told(Usage, "form-not-filled", &error), hint),
    }
}

pub(crate) fn park(error: ParkError) -> Problem {
    match error {
        ParkError::Find(error) => find(error),
        ParkError::Attach(error) => attach(error),
        ParkError::Thread(error) => thread(error),
        ParkError::Store(error) => store(error),
        ParkError::Past(_) | ParkError::Far(_) => told(Usage, "park-time", &error),
        ParkError::NoThread(_) => told(Failed, "no-thread", &error),
        ParkError::NotParked(_) => told(Failed, "not-parked", &error),
    }
}
