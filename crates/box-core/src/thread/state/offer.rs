//! What the agent lets a person choose, and what was chosen.

use crate::acp::options::{Offered, Setter};
use box_api::thread::{ChosenOption, ThreadOption};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Requests to set an option that may be on their way at once.
const ASKED_MAX: usize = 64;

/// The options of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(in crate::thread) struct Offer {
    /// As the agent told them last.
    options: Vec<Offered>,
    /// What a person chose, by option; told to the agent again whenever it opens the conversation.
    chosen: BTreeMap<String, String>,
    /// Requests the agent has not answered.
    asked: Vec<Asked>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Asked {
    rpc: i64,
    option: String,
    value: String,
}

/// Why something cannot be chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChooseError {
    #[error("the agent offers no option `{option}`")]
    NoOption {
        option: String,
        offered: Vec<String>,
    },
    #[error("the option `{option}` has no value `{value}`")]
    NoValue {
        option: String,
        value: String,
        offered: Vec<String>,
    },
}

impl ChooseError {
    /// What there is to choose from.
    pub fn hint(&self) -> Option<String> {
        let (Self::NoOption { offered, .. } | Self::NoValue { offered, .. }) = self;
        (!offered.is_empty()).then(|| format!("there are: {}", offered.join(", ")))
    }
}

impl Offer {
    /// The agent told its options anew.
    pub(in crate::thread) fn told(&mut self, options: Vec<Offered>) {
        self.options = options;
    }

    /// The mode the agent says it is in.
    pub(in crate::thread) fn mode_is(&mut self, mode: &str) {
        if let Some(offered) = self.options.iter_mut().find(|one| one.is_mode()) {
            mode.clone_into(&mut offered.shown.value);
            // Left or entered with a person's leave: that is what is to hold after a load as well.
            if let Some(chosen) = self.chosen.get_mut(&offered.shown.option) {
                mode.clone_into(chosen);
            }
        }
    }

    /// The option of this id or, if it is the only one, of this category; with a value it has. What
    /// the agent has not told yet is left for it to judge.
    pub(in crate::thread) fn find(
        &self,
        wanted: &ChosenOption,
    ) -> Result<ChosenOption, ChooseError> {
        if self.options.is_empty() {
            return Ok(wanted.clone());
        }
        let ChosenOption { option, value } = wanted;
        let by_id = self.options.iter().find(|one| one.shown.option == *option);
        let found = by_id.or_else(|| self.only_of(option));
        let Some(offered) = found else {
            let offered = self.options.iter().map(|one| one.shown.option.clone());
            return Err(ChooseError::NoOption {
                option: option.clone(),
                offered: offered.collect(),
            });
        };
        if !offered.has(value) {
            return Err(ChooseError::NoValue {
                option: option.clone(),
                value: value.clone(),
                offered: offered.values(),
            });
        }
        Ok(ChosenOption {
            option: offered.shown.option.clone(),
            value: value.clone(),
        })
    }

    fn only_of(&self, category: &str) -> Option<&Offered> {
        // What people call effort, ACP calls the level of thought.
        let category = if category == "effort" {
            "thought_level"
        } else {
            category
        };
        let mut of = self
            .options
            .iter()
            .filter(|one| one.shown.category == category);
        of.next().filter(|_| of.next().is_none())
    }

    pub(in crate::thread) fn choose(&mut self, chosen: ChosenOption) {
        self.chosen.insert(chosen.option, chosen.value);
    }

    pub(in crate::thread) fn forget(&mut self, option: &str) {
        self.chosen.remove(option);
    }

    /// The mode a person chose, if the agent has it.
    pub(in crate::thread) fn chosen_mode(&self) -> Option<&str> {
        let offered = self.options.iter().find(|one| one.is_mode())?;
        let chosen = self.chosen.get(&offered.shown.option)?;
        offered.has(chosen).then_some(chosen.as_str())
    }

    /// The id of the option that is the mode.
    pub(in crate::thread) fn mode_option(&self) -> Option<&str> {
        let mode = self.options.iter().find(|one| one.is_mode())?;
        Some(&mode.shown.option)
    }

    /// Something chosen, besides the mode, that the agent is still to be told.
    pub(in crate::thread) fn next(&self) -> Option<ChosenOption> {
        let differs = |(option, value): &(&String, &String)| {
            let offered = self
                .options
                .iter()
                .find(|offered| offered.shown.option == **option);
            offered
                .is_some_and(|one| !one.is_mode() && one.shown.value != **value && one.has(value))
        };
        let (option, value) = self.chosen.iter().find(differs)?;
        Some(ChosenOption {
            option: option.clone(),
            value: value.clone(),
        })
    }

    pub(in crate::thread) fn setter(&self, option: &str) -> Setter {
        let offered = self.options.iter().find(|one| one.shown.option == option);
        offered.map_or(Setter::Config, |one| one.setter)
    }

    /// Holds from here on, as far as the agent did not say otherwise.
    pub(in crate::thread) fn holds(&mut self, option: &str, value: &str) {
        let offered = self
            .options
            .iter_mut()
            .find(|one| one.shown.option == option);
        if let Some(offered) = offered {
            value.clone_into(&mut offered.shown.value);
        }
    }

    pub(in crate::thread) fn asked(&mut self, rpc: i64, chosen: &ChosenOption) {
        if self.asked.len() < ASKED_MAX {
            self.asked.push(Asked {
                rpc,
                option: chosen.option.clone(),
                value: chosen.value.clone(),
            });
        }
    }

    /// What was asked under this number.
    pub(in crate::thread) fn answered(&mut self, rpc: Option<i64>) -> Option<ChosenOption> {
        let at = self.asked.iter().position(|one| Some(one.rpc) == rpc)?;
        let Asked { option, value, .. } = self.asked.remove(at);
        Some(ChosenOption { option, value })
    }

    /// The agent that was asked is gone.
    pub(in crate::thread) fn nobody_asked(&mut self) {
        self.asked.clear();
    }

    pub(in crate::thread) fn shown(&self) -> Vec<ThreadOption> {
        self.options.iter().map(|one| one.shown.clone()).collect()
    }

    /// Chosen, and not what holds.
    pub(in crate::thread) fn pending(&self) -> Vec<ChosenOption> {
        let holds = |option: &str, value: &str| {
            let mut options = self.options.iter();
            options.any(|one| one.shown.option == option && one.shown.value == value)
        };
        let pending = self
            .chosen
            .iter()
            .filter(|(option, value)| !holds(option, value));
        pending
            .map(|(option, value)| ChosenOption {
                option: option.clone(),
                value: value.clone(),
            })
            .collect()
    }
}
