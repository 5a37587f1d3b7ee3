//! The state machine of a thread: something happens, and what follows from it. No I/O.
//!
//! ```text
//!  Prompt ─▶ (agent absent: StartAgent) ─▶ Started ─▶ initialize ─▶ new or load ─▶ set mode ─▶ Ready
//!  Ready  ─▶ prompt ─▶ updates, requests … ─▶ response ─▶ TurnEnded ─▶ next prompt of the queue
//!  AgentGone at any time ─▶ decisions lost, open calls interrupted, TurnEnded (failed) ─▶ Absent
//! ```

mod agent;
mod asks;
mod back;
mod background;
mod choose;
mod park;
mod queue;
mod repeats;
mod rows;
mod turn;

use super::state::{Action, ThreadInput, ThreadState};
use crate::acp::method::{self, News, Wanted};
use crate::acp::{Incoming, send};
use box_api::DecisionId;
use box_api::thread::Item;
use serde_json::json;

/// When a step happens, and where new decisions get their numbers from.
pub struct Moment<'a> {
    /// UTC, milliseconds since 1970.
    pub now_ms: i64,
    pub number: &'a mut dyn FnMut() -> DecisionId,
}

impl std::fmt::Debug for Moment<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Moment")
            .field("now_ms", &self.now_ms)
            .finish_non_exhaustive()
    }
}

/// A step under way.
struct Step<'a> {
    state: &'a mut ThreadState,
    now_ms: i64,
    number: &'a mut dyn FnMut() -> DecisionId,
    actions: Vec<Action>,
}

/// What one start of an agent may print. All of it is kept, so that nothing is lost, and this is
/// what stands between an agent that talks without end and the host's disk.
pub(super) const OUTPUT_BYTES_MAX: u64 = 1 << 30;

/// The agent printed more than [`OUTPUT_BYTES_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the agent printed more than {} MiB since it was started", OUTPUT_BYTES_MAX >> 20)]
struct TooMuchOutput;

impl ThreadState {
    /// Takes one input and says what is to be done.
    pub fn step(&mut self, input: ThreadInput, moment: Moment<'_>) -> Vec<Action> {
        let Moment { now_ms, number } = moment;
        let mut step = Step {
            state: self,
            now_ms,
            number,
            actions: Vec::new(),
        };
        match input {
            ThreadInput::Prompt { text } => step.prompt(text),
            ThreadInput::Steer { text } => step.steer(text),
            ThreadInput::Queued(change) => step.queued(change),
            ThreadInput::Choose { chosen } => step.choose(chosen),
            ThreadInput::Rename { title } => step.rename(&title),
            ThreadInput::Open => step.open_idle(),
            ThreadInput::StopTask { task, by } => step.stop_task(&task, &by),
            ThreadInput::Write { items } => items.into_iter().for_each(|item| step.append(item)),
            ThreadInput::Cancel { by } => step.cancel(&by),
            ThreadInput::Answer {
                decision,
                option,
                by,
            } => step.answer(decision, &option, by),
            ThreadInput::AnswerForm {
                decision,
                answer,
                by,
            } => step.answer_form(decision, &answer, &by),
            ThreadInput::Park { until_ms, by } => step.park(until_ms, &by),
            ThreadInput::Pause { until_ms, why } => step.pause(until_ms, &why),
            ThreadInput::Unpause { why } => step.unpause(&why),
            ThreadInput::Resume { by } => step.resume(by.as_deref()),
            ThreadInput::WentBack(gone) => step.went_back(gone),
            ThreadInput::Started => step.started(),
            ThreadInput::Line(message) => step.message(message),
            ThreadInput::LineTooLong => step.fail_agent(&crate::acp::LineTooLong.to_string()),
            ThreadInput::TooMuchOutput => step.fail_agent(&TooMuchOutput.to_string()),
            ThreadInput::AgentGone { why, last_words } => step.agent_gone(&why, &last_words),
            ThreadInput::Reattached => step.reattached(),
            ThreadInput::Tick => {
                step.hold_times();
                step.tick();
            }
        }
        step.actions
    }
}

impl Step<'_> {
    fn message(&mut self, message: Incoming) {
        if let Incoming::Garbage { text } = message {
            return self.garbage(&text);
        }
        self.state.garbage.in_a_row = 0;
        match message {
            Incoming::Response { id, outcome } => {
                if self.is_setup(id) {
                    self.set_up(outcome);
                } else if self.is_turn(id) {
                    self.prompt_answered(outcome);
                } else if let Some(chosen) = self.state.offer.answered(id) {
                    self.chosen_answered(&chosen, outcome);
                } else if let Some(queued) = self.state.queue.steering(id) {
                    self.steering_answered(queued, &outcome);
                } else if let Some(task) = self.state.background.stopping(id) {
                    self.stop_answered(&task, outcome);
                } else {
                    self.append(Item::Detail {
                        raw: json!({ "late_response": id }),
                    });
                }
            }
            Incoming::Request { id, method, params } => match method::request(&method, params) {
                Wanted::Permission(params) => self.permission(id, params),
                Wanted::Form(params) => self.form(id, &params),
                Wanted::Unserved => self.send(send::unknown_method(&id, &method)),
            },
            Incoming::Notification { method, params } => {
                let known_as = self.state.known_as.as_deref();
                match method::notification(&method, params, known_as) {
                    News::Update(params) => self.update(params),
                    News::TakenBack(rpc) => self.taken_back(&rpc),
                    News::Extension(meaning, item) => self.extension(&meaning, item),
                    News::Other(item) => self.append(item),
                }
            }
            Incoming::Garbage { .. } => {}
        }
    }

    fn send(&mut self, line: String) {
        self.actions.push(Action::Send(line));
    }

    /// A number for a request of this side.
    fn rpc(&mut self) -> i64 {
        self.state.next_rpc += 1;
        self.state.next_rpc - 1
    }
}

#[cfg(test)]
mod invariants;
#[cfg(test)]
mod tests;
