//! Prompts that wait, and prompts for the turn that runs.

use super::Step;
use crate::acp::{RpcError, send};
use crate::thread::state::{Phase, QueueChange, Steering, Urgency};
use box_api::thread::Item;
use serde_json::Value;

/// How long an agent may take to say whether it took a prompt into its turn.
const STEERING_MS_MAX: i64 = 30_000;

impl Step<'_> {
    /// Tells what waits now.
    pub(super) fn queue_row(&mut self) {
        let waiting = self.state.queue.row();
        self.append(Item::Queue { waiting });
    }

    /// From here on a person sends what waits.
    pub(super) fn hold_queue(&mut self) {
        self.state.queue.hold();
        let waiting = self.state.queue.len();
        if waiting > 0 {
            self.notice(match waiting {
                1 => "a prompt waits; it is sent after your next one".to_owned(),
                many => format!("{many} prompts wait; they are sent after your next one"),
            });
        }
    }

    /// Sends the next one, if nothing is in its way.
    pub(super) fn next_of_queue(&mut self) {
        if self.state.turn.is_some() || self.is_parked() {
            return;
        }
        if let Some(text) = self.state.queue.pop_front() {
            self.queue_row();
            self.begin(text);
        }
    }

    /// A prompt for the running turn; when none runs, a prompt as any other.
    pub(super) fn steer(&mut self, text: String) {
        if self.state.turn.is_none() {
            return self.prompt(text);
        }
        let queued = self.state.queue.push_first(text, Urgency::Now);
        self.send_into_turn(queued);
    }

    /// Into the turn, where the agent takes it; else the turn makes room for it.
    fn send_into_turn(&mut self, queued: u64) {
        let turn = self.state.turn.as_ref();
        let sent = turn.is_some_and(|turn| turn.rpc.is_some() && turn.cancel_by_ms.is_none());
        let rpc = self.state.next_rpc;
        let by_ms = self.now_ms.saturating_add(STEERING_MS_MAX);
        let takes = self.state.can.steer && self.state.phase == Phase::Ready && sent;
        let Some(waiting) = self.state.queue.get_mut(queued) else {
            return;
        };
        if takes {
            waiting.steering = Some(Steering { rpc, by_ms });
            let known_as = self.state.known_as.as_deref().unwrap_or_default();
            let line = send::steer(rpc, known_as, &waiting.text);
            self.state.next_rpc += 1;
            self.queue_row();
            self.send(line);
        } else {
            self.queue_row();
            self.make_room();
        }
    }

    /// Cancels the turn, unless the agent has not begun it: then the next is soon enough.
    fn make_room(&mut self) {
        if self
            .state
            .turn
            .as_ref()
            .is_some_and(|turn| turn.rpc.is_some())
        {
            self.cancel("a prompt that was sent at once");
        }
    }

    pub(super) fn steering_answered(&mut self, queued: u64, answer: &Result<Value, RpcError>) {
        let outcome = answer.as_ref().map(|result| result["outcome"].as_str());
        if let Ok(Some("injected" | "startedNewTurn")) = outcome {
            return self.steered(queued);
        }
        if let Some(waiting) = self.state.queue.get_mut(queued) {
            waiting.steering = None;
        }
        match self.state.turn {
            Some(_) => self.make_room(),
            None => self.next_of_queue(),
        }
    }

    /// The agent has it.
    fn steered(&mut self, queued: u64) {
        let Some(waiting) = self.state.queue.remove(queued) else {
            return;
        };
        self.append(Item::Steered { text: waiting.text });
        self.queue_row();
        self.next_of_queue();
    }

    /// Nobody knows whether the agent has it: it is not sent a second time.
    pub(super) fn steering_overdue(&mut self) {
        let now_ms = self.now_ms;
        let overdue = |(queued, by_ms): (u64, i64)| (by_ms <= now_ms).then_some(queued);
        let overdue: Vec<u64> = self
            .state
            .queue
            .on_their_way()
            .filter_map(overdue)
            .collect();
        for queued in overdue {
            self.notice("the agent does not say whether it took what follows into its turn");
            self.steered(queued);
        }
    }

    pub(super) fn queued(&mut self, change: QueueChange) {
        if !self.state.queue.can_change(change.queued()) {
            return;
        }
        match change {
            QueueChange::Edit { queued, text } => {
                if let Some(waiting) = self.state.queue.get_mut(queued) {
                    waiting.text = text;
                }
                self.queue_row();
            }
            QueueChange::Delete { queued } => {
                self.state.queue.remove(queued);
                self.queue_row();
            }
            QueueChange::SendNow { queued } => self.send_now(queued),
        }
    }

    fn send_now(&mut self, queued: u64) {
        let Some(waiting) = self.state.queue.remove(queued) else {
            return;
        };
        if self.state.turn.is_some() {
            self.state.queue.put_first(waiting, Urgency::Now);
            return self.send_into_turn(queued);
        }
        self.state.queue.release();
        self.state.queue.put_first(waiting, Urgency::InTurn);
        if self.is_parked() {
            self.queue_row();
        }
        self.next_of_queue();
    }
}
