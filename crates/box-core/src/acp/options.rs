//! What an agent lets a person choose: `configOptions`, and `modes` of agents that have only those.

use box_api::thread::{OptionChoice, ThreadOption};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Options of one agent, and values of one option. Both are saved with the thread.
const OPTIONS_MAX: usize = 32;
const CHOICES_MAX: usize = 200;
/// Longest id and longest label, bytes. An id that is longer cannot be sent back, so it is left out.
const ID_BYTES_MAX: usize = 512;
const LABEL_BYTES_MAX: usize = 200;

/// One option, and how it is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offered {
    pub shown: ThreadOption,
    pub setter: Setter,
}

/// The method that sets an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Setter {
    /// `session/set_config_option`; the value is a text.
    Config,
    /// The same; the value is true or false.
    Switch,
    /// The older `session/set_mode`.
    Mode,
}

impl Offered {
    pub fn is_mode(&self) -> bool {
        self.shown.category == "mode"
    }

    pub fn has(&self, value: &str) -> bool {
        match self.setter {
            Setter::Switch => matches!(value, "true" | "false"),
            Setter::Config | Setter::Mode => self
                .shown
                .choices
                .iter()
                .any(|choice| choice.value == value),
        }
    }

    /// Every value it can have.
    pub fn values(&self) -> Vec<String> {
        match self.setter {
            Setter::Switch => vec!["true".to_owned(), "false".to_owned()],
            Setter::Config | Setter::Mode => {
                let choices = self.shown.choices.iter();
                choices.map(|choice| choice.value.clone()).collect()
            }
        }
    }
}

/// The options in a result or an update that carries `configOptions` or `modes`; `None` when it
/// carries neither, which changes nothing.
pub fn offered(told: &Value) -> Option<Vec<Offered>> {
    let config = told["configOptions"].as_array();
    let mut options: Vec<Offered> = config
        .map(Vec::as_slice)
        .unwrap_or_default()
        .iter()
        .filter_map(option)
        .take(OPTIONS_MAX)
        .collect();
    let modes = plain_modes(&told["modes"]);
    if config.is_none() && modes.is_none() {
        return None;
    }
    if !options.iter().any(Offered::is_mode) {
        options.extend(modes);
    }
    Some(options)
}

fn option(option: &Value) -> Option<Offered> {
    let id = id(&option["id"])?;
    let category = option["category"].as_str().unwrap_or("other");
    let (value, choices, setter) = match option["type"].as_str() {
        Some("boolean") => {
            let value = option["currentValue"].as_bool()?;
            (value.to_string(), Vec::new(), Setter::Switch)
        }
        Some("select") | None => {
            let choices = choices(&option["options"]);
            (self::id(&option["currentValue"])?, choices, Setter::Config)
        }
        // What cannot be set from here is not offered here.
        Some(_) => return None,
    };
    Some(Offered {
        shown: ThreadOption {
            label: label(&option["name"], &id),
            option: id,
            category: short(category),
            value,
            choices,
        },
        setter,
    })
}

/// Values may be grouped; a group has values of its own.
fn choices(options: &Value) -> Vec<OptionChoice> {
    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let flat = options.iter().flat_map(|choice| {
        let grouped = choice["options"].as_array().map_or(&[][..], Vec::as_slice);
        std::iter::once(choice).chain(grouped)
    });
    let choice = |choice: &Value| {
        let value = id(&choice["value"])?;
        let label = label(&choice["name"], &value);
        Some(OptionChoice { value, label })
    };
    flat.filter_map(choice).take(CHOICES_MAX).collect()
}

fn plain_modes(modes: &Value) -> Option<Offered> {
    let choice = |mode: &Value| {
        let value = id(&mode["id"])?;
        let label = label(&mode["name"], &value);
        Some(OptionChoice { value, label })
    };
    let choices = modes["availableModes"].as_array()?.iter();
    Some(Offered {
        shown: ThreadOption {
            option: "mode".to_owned(),
            label: "Mode".to_owned(),
            category: "mode".to_owned(),
            value: id(&modes["currentModeId"])?,
            choices: choices.filter_map(choice).take(CHOICES_MAX).collect(),
        },
        setter: Setter::Mode,
    })
}

fn id(value: &Value) -> Option<String> {
    let id = value.as_str()?;
    (id.len() <= ID_BYTES_MAX).then(|| id.to_owned())
}

fn label(value: &Value, instead: &str) -> String {
    short(value.as_str().unwrap_or(instead))
}

/// One line, bounded: an agent must not write rows of its own into a list.
fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line[..line.floor_char_boundary(LABEL_BYTES_MAX)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn options_of_every_kind_are_read_and_unknown_kinds_left_out() {
        let told = json!({"configOptions":[
            {"id":"mode","name":"Mode","category":"mode","type":"select","currentValue":"default",
             "options":[{"value":"default","name":"Default"},
                        {"group":"g","name":"G","options":[{"value":"plan","name":"Plan"}]}]},
            {"id":"fast","name":"Fast\nmode","category":"model_config","type":"boolean","currentValue":true},
            {"id":"colour","type":"wheel","currentValue":"red"},
        ]});
        let options = offered(&told).unwrap();
        assert_eq!(options.len(), 2);
        assert_eq!(options[0].values(), ["default", "plan"]);
        assert!(options[0].is_mode() && options[0].has("plan") && !options[0].has("auto"));
        let fast = &options[1];
        assert_eq!(
            (fast.shown.label.as_str(), fast.shown.value.as_str()),
            ("Fast mode", "true")
        );
        assert!(fast.has("false") && !fast.has("maybe"));
    }

    #[test]
    fn modes_alone_are_an_option_and_nothing_told_changes_nothing() {
        let modes =
            json!({"modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"}]}});
        let options = offered(&modes).unwrap();
        assert_eq!(
            (options[0].setter, options[0].shown.option.as_str()),
            (Setter::Mode, "mode")
        );
        assert_eq!(offered(&json!({"stopReason":"end_turn"})), None);
        assert_eq!(offered(&Value::Null), None);
    }

    #[test]
    fn what_an_agent_offers_has_a_bound() {
        let many: Vec<Value> = (0..1000).map(|n| json!({"value":n.to_string()})).collect();
        let option = json!({"id":"x","type":"select","currentValue":"1","options":many});
        let told = json!({"configOptions":vec![option; 100]});
        let options = offered(&told).unwrap();
        assert_eq!(options.len(), OPTIONS_MAX);
        assert_eq!(options[0].shown.choices.len(), CHOICES_MAX);
        let long =
            json!({"configOptions":[{"id":"x".repeat(ID_BYTES_MAX + 1),"currentValue":"a"}]});
        assert_eq!(offered(&long).unwrap(), []);
    }
}
