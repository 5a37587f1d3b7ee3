//! The agent's process: from nothing to ready, and how it ends.

use super::Step;
use crate::acp::message::RpcError;
use crate::acp::options;
use crate::acp::outcome::{Ended, login_note};
use crate::acp::send;
use crate::acp::setup::{self, Modes, Opened};
use crate::thread::state::{Action, Asks, Garbage, Opening, Phase};
use box_api::thread::TurnOutcome;
use serde_json::Value;

/// Lines in a row that are no messages, after which it is no agent.
const GARBAGE_LINES_MAX: u32 = 20;
/// Such lines that are told one by one.
const GARBAGE_TOLD_MAX: u32 = 3;
/// JSON-RPC code of an agent that wants an account.
const AUTH_REQUIRED: i64 = -32000;

impl Step<'_> {
    pub(super) fn start_agent(&mut self) {
        self.state.generation += 1;
        self.state.garbage = Garbage::default();
        self.state.mode = None;
        self.state.phase = Phase::Starting;
        self.actions.push(Action::StartAgent {
            generation: self.state.generation,
        });
    }

    pub(super) fn started(&mut self) {
        if self.state.phase == Phase::Starting {
            let rpc = self.rpc();
            self.state.phase = Phase::Greeting {
                rpc,
                by_ms: self.setup_by_ms(),
            };
            self.send(send::initialize(rpc));
        }
    }

    pub(super) fn setup_by_ms(&self) -> i64 {
        self.now_ms.saturating_add(self.state.settings.start_ms_max)
    }

    pub(super) fn is_setup(&self, id: Option<i64>) -> bool {
        let waiting = match self.state.phase {
            Phase::Greeting { rpc, .. }
            | Phase::Opening { rpc, .. }
            | Phase::Authenticating { rpc, .. }
            | Phase::SettingMode { rpc, .. }
            | Phase::Choosing { rpc, .. } => Some(rpc),
            Phase::Absent | Phase::Starting | Phase::Settling { .. } | Phase::Ready => None,
        };
        id.is_some() && waiting == id
    }

    /// The answer the set-up waited for.
    pub(super) fn set_up(&mut self, answer: Result<Value, RpcError>) {
        match (self.state.phase.clone(), answer) {
            (Phase::Greeting { .. }, Ok(result)) => match setup::greeting(&result) {
                Ok(greeting) => {
                    self.state.can = greeting.can;
                    self.open_conversation();
                }
                Err(error) => self.fail_agent(&error.to_string()),
            },
            (
                Phase::Opening {
                    how: how @ (Opening::New | Opening::Fork),
                    ..
                },
                Ok(result),
            ) => match setup::opened(&result) {
                Ok(opened) => {
                    if how == Opening::Fork {
                        self.may_repeat();
                    }
                    self.opened(opened, &result);
                }
                Err(error) => self.fail_agent(&error.to_string()),
            },
            (
                Phase::Opening {
                    how: Opening::Load, ..
                },
                Ok(result),
            ) => {
                self.may_repeat();
                self.opened(setup::loaded(&result), &result);
            }
            (Phase::SettingMode { wanted, .. }, Ok(result)) => self.mode_set(wanted, &result),
            (
                Phase::Opening {
                    how: Opening::Load, ..
                },
                Err(error),
            ) if error.code != AUTH_REQUIRED => {
                self.notice(format!(
                    "the agent could not take up its earlier conversation and begins a new one: {}",
                    error.message
                ));
                self.open_new();
            }
            (Phase::Opening { .. }, Err(error)) if self.wants_account(&error) => {
                self.authenticate();
            }
            (Phase::Authenticating { .. }, Ok(_)) => self.open_conversation(),
            (Phase::Choosing { chosen, .. }, answer) => {
                self.chosen_answered(&chosen, answer);
                self.choose_next();
            }
            (phase, Err(error)) => self.refused(&phase, &error),
            (Phase::Absent | Phase::Starting | Phase::Settling { .. } | Phase::Ready, Ok(_)) => {}
        }
    }

    /// Whether the agent asks for an account and can be told to take the one of the box. Once per
    /// start: an agent that asks again has looked and found none.
    fn wants_account(&self, error: &RpcError) -> bool {
        error.code == AUTH_REQUIRED
            && self.state.settings.authenticate.is_some()
            && self.state.authenticated_in != Some(self.state.generation)
    }

    fn authenticate(&mut self) {
        let rpc = self.rpc();
        let method = self.state.settings.authenticate.as_deref();
        let line = send::authenticate(rpc, method.unwrap_or_default());
        self.state.authenticated_in = Some(self.state.generation);
        self.state.phase = Phase::Authenticating {
            rpc,
            by_ms: self.setup_by_ms(),
        };
        self.send(line);
    }

    fn refused(&mut self, phase: &Phase, error: &RpcError) {
        let login = self.state.settings.login.as_deref();
        let why = match phase {
            _ if error.code == AUTH_REQUIRED => login_note(&error.message, login),
            Phase::SettingMode { wanted, .. } => {
                format!(
                    "the agent refused the mode `{wanted}`: {} ({})",
                    error.message, error.code
                )
            }
            Phase::Opening { .. } => {
                format!(
                    "the agent could not open a conversation: {} ({})",
                    error.message, error.code
                )
            }
            Phase::Authenticating { .. } => {
                let why = format!("{} ({})", error.message, error.code);
                login_note(&why, login)
            }
            Phase::Greeting { .. }
            | Phase::Absent
            | Phase::Starting
            | Phase::Choosing { .. }
            | Phase::Settling { .. }
            | Phase::Ready => {
                format!(
                    "the agent refused to begin: {} ({})",
                    error.message, error.code
                )
            }
        };
        self.fail_agent(&why);
    }

    /// Opens the conversation: the one there was, if the agent can, else a new one.
    pub(super) fn open_conversation(&mut self) {
        let rpc = self.state.next_rpc;
        let settings = &self.state.settings;
        if let Some(of) = self.state.fork_of.clone() {
            return self.open_fork(&of);
        }
        match self.state.known_as.as_deref() {
            Some(known_as) if self.state.can.load => {
                let opening = send::Opening {
                    cwd: &settings.cwd,
                    meta: &settings.meta,
                };
                let line = send::load_conversation(rpc, known_as, opening);
                self.state.next_rpc += 1;
                self.state.phase = Phase::Opening {
                    rpc,
                    by_ms: self.setup_by_ms(),
                    how: Opening::Load,
                };
                self.send(line);
            }
            Some(_) => {
                self.notice(
                    "the agent cannot take up its earlier conversation and begins a new one",
                );
                self.open_new();
            }
            None => self.open_new(),
        }
    }

    fn open_new(&mut self) {
        let rpc = self.rpc();
        self.state.known_as = None;
        self.state.phase = Phase::Opening {
            rpc,
            by_ms: self.setup_by_ms(),
            how: Opening::New,
        };
        let settings = &self.state.settings;
        let opening = send::Opening {
            cwd: &settings.cwd,
            meta: &settings.meta,
        };
        let line = send::new_conversation(rpc, opening);
        self.send(line);
    }

    fn open_fork(&mut self, of: &str) {
        if !self.state.can.fork {
            return self.fail_agent("the agent cannot fork a conversation");
        }
        let rpc = self.rpc();
        self.state.phase = Phase::Opening {
            rpc,
            by_ms: self.setup_by_ms(),
            how: Opening::Fork,
        };
        let settings = &self.state.settings;
        let opening = send::Opening {
            cwd: &settings.cwd,
            meta: &settings.meta,
        };
        let line = send::fork_conversation(rpc, of, opening);
        self.send(line);
    }

    fn opened(&mut self, opened: Opened, told: &Value) {
        if opened.known_as.is_some() {
            self.state.known_as = opened.known_as;
            self.state.fork_of = None;
        }
        if let Some(options) = options::offered(told) {
            self.state.offer.told(options);
        }
        match opened.modes {
            Some(modes) => self.set_mode(modes),
            // An agent without modes has no default that could be a wrong one.
            None => self.choose_next(),
        }
    }

    /// Never left to the agent's default (decision D8), so that nothing is approved by itself.
    fn set_mode(&mut self, modes: Modes) {
        let settings = &self.state.settings;
        let bypass = settings
            .mode_bypass
            .clone()
            .filter(|mode| modes.offered.contains(mode));
        let chosen = self.state.offer.chosen_mode().map(str::to_owned);
        let wanted = match (chosen, settings.asks, bypass) {
            (Some(chosen), _, _) => chosen,
            (None, Asks::Nobody, Some(bypass)) => bypass,
            (None, Asks::Nobody, None) => {
                let wanted = settings.mode_ask.clone();
                self.notice("the agent has no mode without questions; each is to be allowed once");
                wanted
            }
            (None, Asks::Person, _) => settings.mode_ask.clone(),
        };
        if !modes.offered.contains(&wanted) {
            let offered = modes.offered.join("`, `");
            return self.fail_agent(&format!(
                "the agent has no mode `{wanted}`, only `{offered}`"
            ));
        }
        let rpc = self.rpc();
        let known_as = self.state.known_as.as_deref().unwrap_or_default();
        let line = send::set_mode(rpc, known_as, &modes.setter, &wanted);
        let (by_ms, setter) = (self.setup_by_ms(), modes.setter);
        self.state.phase = Phase::SettingMode {
            rpc,
            by_ms,
            wanted,
            setter,
        };
        self.send(line);
    }

    fn mode_set(&mut self, wanted: String, result: &Value) {
        if let Some(options) = options::offered(result) {
            self.state.offer.told(options);
        }
        match setup::modes(result) {
            Some(modes) if modes.current != wanted => {
                let current = modes.current;
                self.fail_agent(&format!(
                    "the agent stays in mode `{current}`, not `{wanted}`"
                ));
            }
            Some(_) | None => {
                self.state.offer.mode_is(&wanted);
                self.mode(wanted);
                self.choose_next();
            }
        }
    }

    pub(super) fn garbage(&mut self, text: &str) {
        let garbage = &mut self.state.garbage;
        garbage.in_a_row += 1;
        garbage.total += 1;
        garbage.last = Some(text.to_owned());
        let (in_a_row, total) = (garbage.in_a_row, garbage.total);
        if in_a_row >= GARBAGE_LINES_MAX {
            self.fail_agent("the agent does not speak the Agent Client Protocol");
        } else if total <= GARBAGE_TOLD_MAX {
            self.notice(format!(
                "the agent printed a line that is no message: {text}"
            ));
        }
    }

    pub(super) fn reattached(&mut self) {
        // While the host was away nobody could have kept these waiting but the host.
        let setup_by_ms = self.setup_by_ms();
        match &mut self.state.phase {
            Phase::Greeting { by_ms, .. }
            | Phase::Opening { by_ms, .. }
            | Phase::Authenticating { by_ms, .. }
            | Phase::SettingMode { by_ms, .. }
            | Phase::Choosing { by_ms, .. } => *by_ms = setup_by_ms,
            Phase::Settling { .. } => self.ready(),
            Phase::Absent | Phase::Starting | Phase::Ready => {}
        }
    }

    pub(super) fn tick(&mut self) {
        let now_ms = self.now_ms;
        let settles = matches!(self.state.phase, Phase::Settling { .. });
        let due_ms = self.state.phase.by_ms(self.state.repeats.as_ref());
        if settles && due_ms.is_some_and(|by_ms| by_ms <= now_ms) {
            self.settled();
        }
        let due = |by_ms: i64| by_ms <= now_ms;
        let cancel = self.state.turn.as_ref().and_then(|turn| turn.cancel_by_ms);
        let step = match self.state.phase {
            Phase::Greeting { by_ms, .. } if due(by_ms) => Some("answer the first message"),
            Phase::Opening { by_ms, .. } if due(by_ms) => Some("open a conversation"),
            Phase::Authenticating { by_ms, .. } if due(by_ms) => Some("take the account"),
            Phase::SettingMode { by_ms, .. } if due(by_ms) => Some("set its mode"),
            Phase::Choosing { by_ms, .. } if due(by_ms) => Some("set an option"),
            Phase::Greeting { .. }
            | Phase::Opening { .. }
            | Phase::Authenticating { .. }
            | Phase::SettingMode { .. }
            | Phase::Choosing { .. }
            | Phase::Settling { .. }
            | Phase::Absent
            | Phase::Starting
            | Phase::Ready => None,
        };
        self.steering_overdue();
        if let Some(step) = step {
            let seconds = self.state.settings.start_ms_max / 1000;
            self.fail_agent(&format!("the agent did not {step} within {seconds} s"));
        } else if cancel.is_some_and(due) {
            self.fail_agent("the agent did not stop when asked and was ended");
        }
    }

    /// Ends an agent that cannot be worked with.
    pub(super) fn fail_agent(&mut self, why: &str) {
        if self.state.phase != Phase::Absent {
            self.actions.push(Action::KillAgent {
                generation: self.state.generation,
            });
            self.agent_over(&self.with_garbage(why));
        }
    }

    pub(super) fn agent_gone(&mut self, why: &str, last_words: &str) {
        if self.state.phase == Phase::Absent {
            return;
        }
        if !last_words.is_empty() {
            self.notice(format!("the agent's last words:\n{last_words}"));
        }
        let before_ready = match self.state.phase {
            Phase::Greeting { .. }
            | Phase::Opening { .. }
            | Phase::Authenticating { .. }
            | Phase::SettingMode { .. }
            | Phase::Choosing { .. }
            | Phase::Settling { .. } => " before it was ready",
            Phase::Absent | Phase::Starting | Phase::Ready => "",
        };
        self.agent_over(&self.with_garbage(&format!("{why}{before_ready}")));
    }

    /// What the agent printed in place of messages, when it never got past the set-up or printed
    /// nothing else since.
    fn with_garbage(&self, why: &str) -> String {
        match (&self.state.garbage.last, self.state.garbage.in_a_row) {
            (Some(last), 1..) => format!("{why}; it printed: {last}"),
            (_, _) => why.to_owned(),
        }
    }

    pub(super) fn agent_over(&mut self, why: &str) {
        self.state.phase = Phase::Absent;
        self.state.repeats = None;
        self.no_background();
        self.state.offer.nobody_asked();
        self.state.queue.none_on_their_way();
        self.lose_asks(why);
        self.interrupt_calls();
        let outcome = match &self.state.turn {
            Some(turn) if turn.paused => TurnOutcome::Parked,
            Some(turn) if turn.cancel_by_ms.is_some() => TurnOutcome::Cancelled,
            Some(_) => TurnOutcome::Failed,
            None => return self.notice(format!("{why}; the next prompt starts it again")),
        };
        self.end_turn(Ended {
            outcome,
            note: Some(why.to_owned()),
        });
    }
}
