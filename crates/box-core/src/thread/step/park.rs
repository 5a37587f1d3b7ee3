//! Threads that wait for a time: a usage limit, or a person who said so.

use super::Step;
use crate::acp::RpcError;
use crate::acp::outcome::{Ended, is_limit};
use crate::acp::reset;
use crate::clock::shown_ms;
use crate::thread::parked::Parked;
use box_api::control::Parking;
use box_api::thread::TurnOutcome;

/// Where the agent does not say when its limit ends: the first wait, doubled each time.
const RETRY_MS: i64 = 5 * 60_000;
const RETRY_MS_MAX: i64 = 60 * 60_000;
/// First wait for a limit that has just ended, doubled each time.
const SOON_MS: i64 = 10_000;
/// A reset that was told is of this limit if it is not longer over than this.
const JUST_PAST_MS: i64 = 10 * 60_000;
/// A reset that a text puts farther away than this was read wrongly.
const READ_MS_MAX: i64 = 32 * 24 * 3_600_000;
/// What an agent is asked that had begun and was interrupted.
const GO_ON_PAUSED: &str = "Go on where you stopped: the pause is over.";
const GO_ON: &str = "Go on where you stopped: the usage limit that interrupted you is over.";

impl Step<'_> {
    /// When the limit that an error is about ends: as the agent said before, as the error says, or
    /// as its text says. Kept for [`Self::park_at_limit`].
    pub(super) fn limit_reset(&mut self, error: &RpcError) -> Option<i64> {
        let (now_ms, told) = (self.now_ms, self.state.limit_resets_at_ms);
        if !is_limit(error) {
            return told;
        }
        // A limit that ended while the agent was telling of it is tried again soon, then later.
        let soon_ms = (SOON_MS << self.state.limit_retries.min(8)).min(RETRY_MS_MAX);
        let told = told.filter(|at_ms| *at_ms > now_ms.saturating_sub(JUST_PAST_MS));
        let told = told.map(|at_ms| at_ms.max(now_ms.saturating_add(soon_ms)));
        let near = |at_ms: &i64| *at_ms > now_ms && *at_ms - now_ms <= READ_MS_MAX;
        let said = || reset::of_error(error, now_ms).filter(near);
        let reset = told.or_else(said);
        self.state.limit_resets_at_ms = reset;
        reset
    }

    /// The turn ended at a usage limit: it goes on by itself when that is over. Answers what to say.
    pub(super) fn park_at_limit(&mut self, note: Option<String>) -> String {
        let turn = self.state.turn.as_ref();
        let prompt = turn.and_then(|turn| turn.prompt.clone());
        let is_paused = turn.is_some_and(|turn| turn.paused);
        let go_on = if is_paused { GO_ON_PAUSED } else { GO_ON };
        let prompt = Some(prompt.unwrap_or_else(|| go_on.to_owned()));
        let until_ms = self.state.limit_resets_at_ms.take().unwrap_or_else(|| {
            let doubled = RETRY_MS.saturating_mul(1 << self.state.limit_retries.min(10));
            self.now_ms.saturating_add(doubled.min(RETRY_MS_MAX))
        });
        if !is_paused {
            self.state.limit_retries = self.state.limit_retries.saturating_add(1);
        }
        let by_person = |parked: &Parked| parked.why == Parking::Person;
        let parked = match self.state.parked.take().filter(by_person) {
            // Whoever parked it while it ran meant longer than this.
            Some(before) => Parked { prompt, ..before },
            None => Parked {
                why: Parking::Limit,
                until_ms: Some(until_ms),
                since_ms: self.now_ms,
                prompt,
                budget: false,
            },
        };
        let goes_on = match parked.until_ms {
            Some(until_ms) => format!("goes on by itself at {}", shown_ms(until_ms)),
            None => "goes on when it is resumed".to_owned(),
        };
        self.state.parked = Some(parked);
        note.map_or_else(|| goes_on.clone(), |note| format!("{note}; {goes_on}"))
    }

    pub(super) fn park(&mut self, until_ms: Option<i64>, by: &str) {
        let before = self.state.parked.take();
        self.state.parked = Some(Parked {
            why: Parking::Person,
            until_ms,
            since_ms: self.now_ms,
            prompt: before.and_then(|before| before.prompt),
            budget: false,
        });
        let until = match until_ms {
            Some(until_ms) => format!("until {}", shown_ms(until_ms)),
            None => "until it is resumed".to_owned(),
        };
        let running = match self.state.turn {
            Some(_) => "; this turn is not touched",
            None => "",
        };
        self.notice(format!("parked {until} by {by}{running}"));
    }

    /// A budget is used up: nothing goes on before somebody says so or there is a new one, and a
    /// turn that runs is interrupted. Whoever parked the thread before meant it to rest anyway.
    pub(super) fn pause(&mut self, until_ms: Option<i64>, why: &str) {
        if self.state.parked.is_none() {
            self.state.parked = Some(Parked {
                why: Parking::Person,
                until_ms,
                since_ms: self.now_ms,
                prompt: None,
                budget: true,
            });
            self.notice(format!("parked: {why}"));
        }
        let Some(turn) = self.state.turn.as_mut() else {
            return;
        };
        match turn.rpc {
            // The agent has not seen it.
            None => self.end_turn(Ended {
                outcome: TurnOutcome::Parked,
                note: None,
            }),
            Some(_) if turn.cancel_by_ms.is_none() => {
                turn.paused = true;
                self.cancel("the budget");
            }
            Some(_) => {}
        }
    }

    /// There is room in the budget again.
    pub(super) fn unpause(&mut self, why: &str) {
        if self
            .state
            .parked
            .as_ref()
            .is_some_and(|parked| parked.budget)
        {
            self.resume(Some(why));
        }
    }

    pub(super) fn resume(&mut self, by: Option<&str>) {
        let now_ms = self.now_ms;
        // A clock may have been put back since its time had come.
        let due = |parked: &mut Parked| {
            by.is_some() || parked.until_ms.is_some_and(|until_ms| until_ms <= now_ms)
        };
        let Some(parked) = self.state.parked.take_if(due) else {
            return;
        };
        match by {
            Some(by) => self.notice(format!("resumed by {by}")),
            None => self.notice("its time has come: goes on"),
        }
        if self.state.turn.is_some() {
            if let Some(prompt) = parked.prompt {
                self.state.queue.push_front(prompt);
                self.queue_row();
            }
            return;
        }
        self.state.last = None;
        self.state.queue.release();
        match parked.prompt {
            Some(text) => self.begin(text),
            None => self.next_of_queue(),
        }
    }

    /// A prompt that comes while nothing may begin waits.
    pub(super) fn is_parked(&self) -> bool {
        self.state.parked.is_some()
    }

    /// Cancelling what waits: neither the interrupted turn nor the prompts behind it are done.
    pub(super) fn cancel_parked(&mut self, by: &str) {
        if self.state.parked.take().is_none() {
            return;
        }
        self.notice(format!("no longer parked: cancelled by {by}"));
        self.hold_queue();
        self.state.last = Some(TurnOutcome::Cancelled);
    }
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
