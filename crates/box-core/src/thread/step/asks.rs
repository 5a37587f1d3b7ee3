//! Requests of the agent that a person answers. The host never does.

use super::Step;
use crate::acp::ask::{Ask, accepted, declined, summary};
use crate::acp::message::RpcId;
use crate::acp::{RpcError, send};
use crate::thread::parked::is_held;
use crate::thread::state::{Action, Closed, OpenAsk};
use box_api::DecisionId;
use box_api::decision::FormAnswer;
use box_api::thread::{Decision, DecisionState};
use serde_json::{Map, Value};

/// Requests of one agent that may wait at once.
const ASKS_OPEN_MAX: usize = 32;

/// What a decision says that nobody answered in time.
const HELD_TOO_LONG: &str = "the hold time ran out";

/// How a decision ends.
pub(super) struct Ending {
    pub(super) state: DecisionState,
    /// What was filled in.
    pub(super) content: Option<Map<String, Value>>,
    pub(super) by: Option<String>,
    pub(super) note: Option<String>,
}

impl Ending {
    pub(super) fn cancelled(note: &str) -> Self {
        Self {
            note: Some(note.to_owned()),
            ..Self::of(DecisionState::Cancelled)
        }
    }

    fn of(state: DecisionState) -> Self {
        Self {
            state,
            content: None,
            by: None,
            note: None,
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

    fn open(&mut self, rpc: RpcId, mut ask: Ask) {
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
            form: ask.sheet.clone(),
            // In the row, and not again with every change of the thread.
            text: ask.text.take(),
            state: DecisionState::Open,
        };
        self.actions.push(Action::OpenDecision {
            seq,
            at_ms,
            decision: opened,
        });
        self.state.asks.push(OpenAsk {
            decision,
            rpc,
            ask,
            opened_at_ms: Some(self.now_ms),
        });
    }

    pub(super) fn answer(&mut self, decision: DecisionId, option: &str, by: String) {
        let asked = |open: &OpenAsk| {
            open.decision == decision && open.ask.options.iter().any(|offered| offered.id == option)
        };
        let Some(at) = self.state.asks.iter().position(asked) else {
            return;
        };
        let open = self.state.asks.remove(at);
        let option = option.to_owned();
        let result = open.ask.answer(&option);
        let by = Some(by);
        let ending = Ending {
            by,
            ..Ending::of(DecisionState::Answered { option })
        };
        self.settle(&open, ending, &result);
    }

    /// An answer the decision [takes](crate::thread::state::ThreadState::takes).
    pub(super) fn answer_form(&mut self, decision: DecisionId, answer: &FormAnswer, by: &str) {
        let asks = &mut self.state.asks;
        let Some(at) = asks.iter().position(|open| open.decision == decision) else {
            return;
        };
        let ask = &asks[at].ask;
        let (mut ending, result) = match answer {
            FormAnswer::Fill { values } => {
                let Ok(content) = ask.fill(values) else {
                    return;
                };
                let option = summary(&content);
                let result = accepted(&content);
                let ending = Ending {
                    content: Some(content),
                    ..Ending::of(DecisionState::Answered { option })
                };
                (ending, result)
            }
            FormAnswer::Decline => declining(ask),
            FormAnswer::Cancel => (Ending::of(DecisionState::Cancelled), ask.cancelled()),
        };
        ending.by = Some(by.to_owned());
        let open = self.state.asks.remove(at);
        self.settle(&open, ending, &result);
    }

    /// Denies what has waited as long as it may: never an approval, and nobody's answer.
    pub(super) fn hold_times(&mut self) {
        let Some(after_ms) = self.state.deny_after_ms else {
            return;
        };
        let now_ms = self.now_ms;
        let over = |open: &OpenAsk| {
            let opened = open.opened_at_ms.filter(|_| is_held(open.ask.about));
            opened.is_some_and(|opened| opened.saturating_add(after_ms) <= now_ms)
        };
        while let Some(at) = self.state.asks.iter().position(over) {
            let open = self.state.asks.remove(at);
            let (ending, result) = declining(&open.ask);
            let note = Some(HELD_TOO_LONG.to_owned());
            self.settle(&open, Ending { note, ..ending }, &result);
        }
    }

    fn settle(&mut self, open: &OpenAsk, ending: Ending, result: &Value) {
        self.close(open.decision, ending);
        self.send(send::result(&open.rpc, result));
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
            let ending = Ending {
                by,
                ..Ending::of(DecisionState::Cancelled)
            };
            let result = open.ask.cancelled();
            self.settle(&open, ending, &result);
        }
    }

    /// Ends every open request of an agent that is no more.
    pub(super) fn lose_asks(&mut self, reason: &str) {
        for open in std::mem::take(&mut self.state.asks) {
            let state = DecisionState::Lost {
                reason: reason.to_owned(),
            };
            self.close(open.decision, Ending::of(state));
        }
    }

    fn close(&mut self, decision: DecisionId, ending: Ending) {
        let Ending {
            state,
            content,
            by,
            note,
        } = ending;
        let (seq, at_ms) = (self.next_seq(), self.now_ms);
        self.actions.push(Action::CloseDecision(Closed {
            seq,
            at_ms,
            decision,
            state,
            content,
            by,
            note,
        }));
    }
}

/// No to this request and nothing else: the option of its own that says so, else as if it had been
/// taken away.
fn declining(ask: &Ask) -> (Ending, Value) {
    let declined_form = DecisionState::Answered {
        option: "declined".to_owned(),
    };
    match (&ask.sheet, ask.rejecting()) {
        (Some(_), _) => (Ending::of(declined_form), declined()),
        (None, Some(no)) => {
            let option = no.id.clone();
            let result = ask.answer(&option);
            (Ending::of(DecisionState::Answered { option }), result)
        }
        (None, None) => (Ending::of(DecisionState::Cancelled), ask.cancelled()),
    }
}
