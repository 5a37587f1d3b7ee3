//! What the model server knows and remembers.

use super::api::Api;
use super::check::Refusal;
use super::script::{Script, Step};
use std::collections::HashMap;

/// More than any test makes; later ones are not kept.
const RECORDS_MAX: usize = 5_000;

/// A request that was answered from a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// The script's key.
    pub prompt: String,
    /// Place in the script, from 0.
    pub message: usize,
    /// Claude Code's session, from its header.
    pub session: Option<String>,
    pub model: String,
    /// Scripts whose prompts stand earlier in the same conversation, oldest first.
    pub before: Vec<String>,
    /// Texts of the `tool_result` blocks of the last message.
    pub tool_results: Vec<String>,
}

#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// How many answers came this far.
    pub(crate) reached: u32,
    pub(crate) open: bool,
}

#[derive(Debug, Default)]
pub(crate) struct ModelState {
    /// The one credential that each takes; absent: no model server there.
    tokens: HashMap<Api, String>,
    pub(crate) scripts: Vec<Script>,
    pub(crate) gates: HashMap<String, Gate>,
    pub(crate) turns: Vec<Turn>,
    pub(crate) refusals: Vec<Refusal>,
    pub(crate) sides: Vec<String>,
    /// Requests answered with a script's error so far, by script and place.
    failed: HashMap<(String, usize), u32>,
    ids: u64,
}

impl ModelState {
    pub(crate) fn open_for(&mut self, api: Api, token: String) {
        self.tokens.insert(api, token);
    }

    /// The API that is served at a host, if one is.
    pub(crate) fn served_at(&self, host: &str) -> Option<Api> {
        Api::at(host).filter(|api| self.tokens.contains_key(api))
    }

    pub(crate) fn token(&self, api: Api) -> String {
        self.tokens.get(&api).cloned().unwrap_or_default()
    }

    /// A number no other message or tool call has.
    pub(crate) fn next_id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    pub(crate) fn refused(&mut self, refusal: Refusal) {
        if self.refusals.len() < RECORDS_MAX {
            self.refusals.push(refusal);
        }
    }

    pub(crate) fn side(&mut self, line: String) {
        if self.sides.len() < RECORDS_MAX {
            self.sides.push(line);
        }
    }

    /// Remembers the turn and gives its steps; an error that is used up is left out.
    pub(crate) fn take(&mut self, turn: Turn) -> Vec<Step> {
        let script = self
            .scripts
            .iter()
            .find(|script| script.prompt == turn.prompt);
        let steps = script
            .and_then(|script| script.messages.get(turn.message))
            .cloned();
        let mut steps = steps.unwrap_or_else(|| vec![Step::text("(the script is over)")]);
        if let Some(Step::Fail { times, .. }) = steps.first() {
            let failed = self
                .failed
                .entry((turn.prompt.clone(), turn.message))
                .or_default();
            *failed += 1;
            if *failed > *times {
                steps.remove(0);
            }
        }
        if self.turns.len() < RECORDS_MAX {
            self.turns.push(turn);
        }
        steps
    }
}
