//! Requests of the agent that a person answers. The host never does.

use super::Step;
use crate::acp::ask::{Answered, Ask, declined};
use crate::acp::message::RpcId;
use crate::acp::{RpcError, send};
use crate::thread::state::{Action, Closed, OpenAsk};
use box_api::DecisionId;
use box_api::thread::{Decision, DecisionState};
use serde_json::Value;

/// Requests of one agent that may wait at once.
const ASKS_OPEN_MAX: usize = 32;

/// Why a decision ends without an answer.
pub(super) struct Ending {
    pub(super) state: DecisionState,
    pub(super) by: Option<String>,
    pub(super) note: Option<String>,
}

impl Ending {
    pub(super) fn cancelled(note: &str) -> Self {
        Self {
            state: DecisionState::Cancelled,
            by: None,
            note: Some(note.to_owned()),
        }
    }
}

impl Step<'_> {
    pub(super) fn permission(&mut self, rpc: RpcId, params: Value) {
        match Ask::permission(params) {
            Ok((ask, call)) => {
                if !call.call.is_empty() && !self.knows_call(&call.call) {
                    self.call(call);
                }
                self.ask(rpc, ask);
            }
            Err(error) => self.send(send::error(&rpc, &error)),
        }
    }

    pub(super) fn form(&mut self, rpc: RpcId, params: &Value) {
        if let Some(ask) = Ask::form(params) {
            return self.ask(rpc, ask);
        }
        self.notice("the agent asked for something that cannot be asked here; it was declined");
        self.send(send::result(&rpc, &declined()));
    }

    fn ask(&mut self, rpc: RpcId, ask: Ask) {
        if self
            .state
            .turn
            .as_ref()
            .is_some_and(|turn| turn.cancel_by_ms.is_some())
        {
            return self.send(send::result(&rpc, &ask.cancelled()));
        }
        if let Some(at) = self.state.asks.iter().position(|open| open.rpc == rpc) {
            // An answer to the older one would now be taken for the newer one's.
            let older = self.state.asks.remove(at);
            self.close(
                older.decision,
                Ending::cancelled("the agent asked something else under the same number"),
            );
        }
        if self.state.asks.len() >= ASKS_OPEN_MAX {
            let message = format!("more than {ASKS_OPEN_MAX} requests are open");
            let error = RpcError {
                code: -32603,
                message,
                data: Value::Null,
            };
            return self.send(send::error(&rpc, &error));
        }
        self.open(rpc, ask);
    }

    fn open(&mut self, rpc: RpcId, ask: Ask) {
        let decision = (self.number)();
        let (seq, at_ms) = (self.next_seq(), self.now_ms);
        let opened = Decision {
            decision,
            box_id: self.state.settings.box_id,
            thread: Some(self.state.settings.thread),
            about: ask.about,
            title: ask.title.clone(),
            call: ask.call.clone(),
            options: ask.options.clone(),
            state: DecisionState::Open,
        };
        self.actions.push(Action::OpenDecision {
            seq,
            at_ms,
            decision: opened,
        });
        self.state.asks.push(OpenAsk { decision, rpc, ask });
    }

    pub(super) fn answer(&mut self, decision: DecisionId, option: &str, by: String) {
        let asked = |open: &OpenAsk| {
            open.decision == decision && open.ask.options.iter().any(|offered| offered.id == option)
        };
        let Some(at) = self.state.asks.iter().position(asked) else {
            return;
        };
        let OpenAsk { rpc, ask, .. } = self.state.asks.remove(at);
        let state = DecisionState::Answered {
            option: option.to_owned(),
        };
        self.close(
            decision,
            Ending {
                state,
                by: Some(by),
                note: None,
            },
        );
        match ask.answer(option) {
            Answered::Result(result) => self.send(send::result(&rpc, &result)),
            Answered::Next(next) => self.open(rpc, next),
        }
    }

    pub(super) fn taken_back(&mut self, rpc: &RpcId) {
        let Some(at) = self.state.asks.iter().position(|open| open.rpc == *rpc) else {
            return;
        };
        let open = self.state.asks.remove(at);
        self.close(
            open.decision,
            Ending::cancelled("the agent took the request back"),
        );
        self.send(send::result(rpc, &open.ask.cancelled()));
    }

    /// Ends every open request and tells the agent.
    pub(super) fn cancel_asks(&mut self, by: Option<&str>) {
        for open in std::mem::take(&mut self.state.asks) {
            let by = by.map(str::to_owned);
            self.close(
                open.decision,
                Ending {
                    state: DecisionState::Cancelled,
                    by,
                    note: None,
                },
            );
            self.send(send::result(&open.rpc, &open.ask.cancelled()));
        }
    }

    /// Ends every open request of an agent that is no more.
    pub(super) fn lose_asks(&mut self, reason: &str) {
        for open in std::mem::take(&mut self.state.asks) {
            let state = DecisionState::Lost {
                reason: reason.to_owned(),
            };
            self.close(
                open.decision,
                Ending {
                    state,
                    by: None,
                    note: None,
                },
            );
        }
    }

    fn close(&mut self, decision: DecisionId, ending: Ending) {
        let Ending { state, by, note } = ending;
        let (seq, at_ms) = (self.next_seq(), self.now_ms);
        self.actions.push(Action::CloseDecision(Closed {
            seq,
            at_ms,
            decision,
            state,
            by,
            note,
        }));
    }
}
