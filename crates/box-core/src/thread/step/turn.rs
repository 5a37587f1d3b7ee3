//! Prompts, and how turns end.

use super::Step;
use crate::acp::message::RpcError;
use crate::acp::outcome::{self, Ended, Failure};
use crate::acp::send;
use crate::thread::state::{Again, Health, Phase, Turn};
use box_api::thread::{Item, TurnOutcome};
use serde_json::Value;

/// How long a cancelled agent may take to end its turn.
const CANCEL_MS_MAX: i64 = 15_000;

impl Step<'_> {
    pub(super) fn prompt(&mut self, text: String) {
        if self.state.title.is_empty() {
            self.retitle(&text);
        }
        if self.state.turn.is_none() && !self.is_parked() {
            self.state.queue.release();
            return self.begin(text);
        }
        self.state.queue.push(text);
        self.queue_row();
    }

    pub(super) fn begin(&mut self, text: String) {
        self.append(Item::Prompt { text: text.clone() });
        self.state.turn = Some(Turn {
            prompt: Some(text),
            rpc: None,
            cancel_by_ms: None,
            again: Again::First,
            health: Health::Good,
            paused: false,
        });
        self.state.last = None;
        self.state.background.rests();
        match self.state.phase {
            Phase::Absent => self.start_agent(),
            Phase::Ready => self.ready(),
            Phase::Starting
            | Phase::Greeting { .. }
            | Phase::Opening { .. }
            | Phase::Authenticating { .. }
            | Phase::SettingMode { .. }
            | Phase::Choosing { .. }
            | Phase::Settling { .. } => {}
        }
    }

    /// Sends the prompt of the turn that waits for the agent, if there is one.
    pub(super) fn send_prompt(&mut self) {
        let rpc = self.state.next_rpc;
        let known_as = self.state.known_as.as_deref().unwrap_or_default();
        let Some(turn) = self.state.turn.as_mut().filter(|turn| turn.rpc.is_none()) else {
            return;
        };
        let Some(text) = turn.prompt.as_deref() else {
            return;
        };
        let line = send::prompt(rpc, known_as, text);
        turn.rpc = Some(rpc);
        self.state.repeats = None;
        self.state.next_rpc += 1;
        self.send(line);
    }

    pub(super) fn is_turn(&self, id: Option<i64>) -> bool {
        id.is_some() && self.state.turn.as_ref().is_some_and(|turn| turn.rpc == id)
    }

    pub(super) fn prompt_answered(&mut self, answer: Result<Value, RpcError>) {
        let mut ended = match answer {
            Ok(result) => outcome::from_result(&result),
            Err(error) => {
                let resets_at_ms = self.limit_reset(&error);
                let login = self.state.settings.login.as_deref();
                match outcome::from_error(&error, resets_at_ms, login) {
                    Failure::Ended(ended) => ended,
                    Failure::Forgotten if self.ask_again() => return,
                    Failure::Forgotten => Ended {
                        outcome: TurnOutcome::Failed,
                        note: Some("the agent has lost the conversation".to_owned()),
                    },
                }
            }
        };
        let turn = self.state.turn.as_ref();
        let health = turn.map_or(Health::Good, |turn| turn.health);
        let cancelled = turn.is_some_and(|turn| turn.cancel_by_ms.is_some());
        let paused = turn.is_some_and(|turn| turn.paused);
        match (ended.outcome, health) {
            (TurnOutcome::Cancelled | TurnOutcome::Failed, _) if paused => {
                ended = Ended {
                    outcome: TurnOutcome::Parked,
                    note: None,
                };
            }
            (TurnOutcome::Failed | TurnOutcome::Parked, _) if cancelled => {
                ended.outcome = TurnOutcome::Cancelled;
            }
            (TurnOutcome::Done, Health::SystemError) => {
                ended.outcome = TurnOutcome::Failed;
                ended.note = Some("the agent reported an error of its own".to_owned());
            }
            (_, _) => {}
        }
        self.end_turn(ended);
    }

    /// Takes the conversation up again and sends the prompt once more. Answers whether it will.
    fn ask_again(&mut self) -> bool {
        let may = |turn: &&mut Turn| {
            turn.again == Again::First && turn.prompt.is_some() && turn.cancel_by_ms.is_none()
        };
        let Some(turn) = self.state.turn.as_mut().filter(may) else {
            return false;
        };
        turn.again = Again::Second;
        turn.rpc = None;
        self.open_conversation();
        true
    }

    pub(super) fn cancel(&mut self, by: &str) {
        let by_ms = self.now_ms + CANCEL_MS_MAX;
        match self.state.turn.as_mut() {
            Some(turn) if turn.rpc.is_none() => {
                let outcome = TurnOutcome::Cancelled;
                self.end_turn(Ended {
                    outcome,
                    note: None,
                });
            }
            Some(turn) if turn.cancel_by_ms.is_none() => {
                turn.cancel_by_ms = Some(by_ms);
                let known_as = self.state.known_as.as_deref().unwrap_or_default();
                let line = send::cancel(known_as);
                self.send(line);
                self.cancel_asks(Some(by));
            }
            None => self.cancel_parked(by),
            // Cancelled already.
            Some(_) => {}
        }
    }

    pub(super) fn end_turn(&mut self, ended: Ended) {
        let Ended { outcome, mut note } = ended;
        match outcome {
            TurnOutcome::Parked => note = Some(self.park_at_limit(note)),
            TurnOutcome::Done => self.state.limit_retries = 0,
            TurnOutcome::Failed
            | TurnOutcome::Refused
            | TurnOutcome::Cancelled
            | TurnOutcome::StoppedShort => {}
        }
        let is_paused = self.state.turn.as_ref().is_some_and(|turn| turn.paused);
        if is_paused || matches!(outcome, TurnOutcome::Cancelled | TurnOutcome::Failed) {
            self.interrupt_calls();
        }
        if outcome == TurnOutcome::Cancelled {
            self.cancel_asks(None);
        }
        self.forget_finished_calls();
        self.append(Item::TurnEnded { outcome, note });
        self.state.turn = None;
        self.state.last = Some(outcome);
        self.next_prompt(outcome);
    }

    /// What was asked on top of a turn that failed or was cancelled is for a person to send; and what
    /// waits behind a parked one goes on waiting.
    fn next_prompt(&mut self, outcome: TurnOutcome) {
        let urgent = self.state.queue.first_is_urgent();
        match outcome {
            // It was cancelled for this.
            TurnOutcome::Cancelled if urgent => self.state.queue.release(),
            TurnOutcome::Cancelled | TurnOutcome::Failed => self.hold_queue(),
            TurnOutcome::Parked
            | TurnOutcome::Done
            | TurnOutcome::Refused
            | TurnOutcome::StoppedShort => {}
        }
        self.next_of_queue();
    }
}
