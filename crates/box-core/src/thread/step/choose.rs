//! Options and titles a person chooses.

use super::Step;
use crate::acp::{RpcError, options, send};
use crate::thread::state::{Phase, TitledBy};
use box_api::thread::{ChosenOption, Item};
use serde_json::Value;

impl Step<'_> {
    /// Each is kept, and told to the agent at once if it listens.
    pub(super) fn choose(&mut self, chosen: Vec<ChosenOption>) {
        for chosen in chosen {
            self.state.offer.choose(chosen.clone());
            if matches!(self.state.phase, Phase::Settling { .. } | Phase::Ready) {
                let rpc = self.rpc();
                self.state.offer.asked(rpc, &chosen);
                self.send_choice(rpc, &chosen);
            }
        }
    }

    fn send_choice(&mut self, rpc: i64, chosen: &ChosenOption) {
        let known_as = self.state.known_as.as_deref().unwrap_or_default();
        let setter = self.state.offer.setter(&chosen.option);
        let line = send::set_option(rpc, known_as, setter, chosen);
        self.send(line);
    }

    /// Tells a freshly opened conversation what was chosen before; then it is ready.
    pub(super) fn choose_next(&mut self) {
        let Some(chosen) = self.state.offer.next() else {
            return self.ready();
        };
        let (rpc, by_ms) = (self.rpc(), self.setup_by_ms());
        self.send_choice(rpc, &chosen);
        self.state.phase = Phase::Choosing { rpc, by_ms, chosen };
    }

    /// A refused choice is told and forgotten; it fails nothing (C48).
    pub(super) fn chosen_answered(
        &mut self,
        chosen: &ChosenOption,
        answer: Result<Value, RpcError>,
    ) {
        let ChosenOption { option, value } = chosen.clone();
        match answer {
            Ok(result) => {
                self.state.offer.holds(&option, &value);
                if let Some(told) = options::offered(&result) {
                    self.state.offer.told(told);
                }
                if self.state.offer.mode_option() == Some(option.as_str()) {
                    self.mode(value.clone());
                }
                self.append(Item::OptionSet {
                    option,
                    value,
                    refused: None,
                });
            }
            Err(error) => {
                self.state.offer.forget(&option);
                let refused = Some(format!("{} ({})", error.message, error.code));
                self.append(Item::OptionSet {
                    option,
                    value,
                    refused,
                });
            }
        }
    }

    pub(super) fn rename(&mut self, title: &str) {
        self.state.titled_by = TitledBy::Person;
        self.retitle(title);
    }

    /// Opens the conversation before there is a prompt for it.
    pub(super) fn open_idle(&mut self) {
        if self.state.phase == Phase::Absent {
            self.start_agent();
        }
    }
}
