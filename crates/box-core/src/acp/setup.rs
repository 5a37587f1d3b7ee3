//! What the agent answers when a conversation is set up: `initialize`, `session/new`,
//! `session/load`, and the modes it offers.

use super::PROTOCOL_VERSION;
use box_api::thread::ThreadAbilities;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Longest name of a conversation, a mode or an option, bytes: they are saved with the thread.
const NAME_BYTES_MAX: usize = 4 << 10;

/// What `initialize` told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Greeting {
    pub can: ThreadAbilities,
}

/// What opening a conversation told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// The agent's own name for the conversation; absent after a load.
    pub known_as: Option<String>,
    pub modes: Option<Modes>,
}

/// The modes an agent offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Modes {
    pub setter: ModeSetter,
    pub offered: Vec<String>,
    pub current: String,
}

/// How a mode is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModeSetter {
    /// As a configuration option; its answer tells the mode that now holds.
    Config { config: String },
    /// By the older method, whose answer is empty.
    Mode,
}

/// Why a set-up answer cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    #[error(
        "the agent speaks version {found} of the Agent Client Protocol, not {PROTOCOL_VERSION}"
    )]
    Version { found: String },
    #[error("the agent opened a conversation without naming it")]
    NoName,
    #[error("the agent's name for a conversation is longer than {NAME_BYTES_MAX} bytes")]
    LongName,
}

/// Reads the result of `initialize`.
///
/// # Errors
/// [`SetupError::Version`].
pub fn greeting(result: &Value) -> Result<Greeting, SetupError> {
    let version = &result["protocolVersion"];
    if version.as_u64() != Some(PROTOCOL_VERSION) {
        return Err(SetupError::Version {
            found: version.to_string(),
        });
    }
    let capabilities = &result["agentCapabilities"];
    let is = |value: &Value| value.as_bool().unwrap_or_default();
    // An object, if empty, says that it can.
    let has = |value: &Value| is(value) || value.is_object();
    let air = &result["_meta"]["jetbrains.air"]["capabilities"];
    let stops = air.as_array().map(Vec::as_slice).unwrap_or_default();
    let can = ThreadAbilities {
        load: is(&capabilities["loadSession"]),
        fork: has(&capabilities["sessionCapabilities"]["fork"]),
        steer: is(&result["_meta"]["steering"]["supported"]),
        stop_task: stops.iter().any(|capability| capability == "asyncTasks"),
        images: is(&capabilities["promptCapabilities"]["image"]),
    };
    Ok(Greeting { can })
}

/// Reads the result of `session/new`.
///
/// # Errors
/// [`SetupError::NoName`].
pub fn opened(result: &Value) -> Result<Opened, SetupError> {
    let known_as = result["sessionId"].as_str().ok_or(SetupError::NoName)?;
    if known_as.len() > NAME_BYTES_MAX {
        return Err(SetupError::LongName);
    }
    Ok(Opened {
        known_as: Some(known_as.to_owned()),
        modes: modes(result),
    })
}

/// Reads the result of `session/load`, which may be null.
pub fn loaded(result: &Value) -> Opened {
    Opened {
        known_as: None,
        modes: modes(result),
    }
}

/// The modes in a result that carries `configOptions` or `modes`. The option is preferred, for
/// its answer can be checked.
pub fn modes(result: &Value) -> Option<Modes> {
    config_mode(&result["configOptions"]).or_else(|| plain_modes(&result["modes"]))
}

fn config_mode(options: &Value) -> Option<Modes> {
    let option = options
        .as_array()?
        .iter()
        .find(|option| option["category"] == "mode")?;
    let config = name(&option["id"])?;
    let mut offered = Vec::new();
    // Options may be grouped; a group has options of its own.
    for choice in option["options"].as_array()? {
        let grouped = choice["options"].as_array().map_or(&[][..], Vec::as_slice);
        let values = std::iter::once(choice)
            .chain(grouped)
            .filter_map(|c| name(&c["value"]));
        offered.extend(values);
    }
    let current = name(&option["currentValue"])?;
    Some(Modes {
        setter: ModeSetter::Config { config },
        offered,
        current,
    })
}

fn plain_modes(modes: &Value) -> Option<Modes> {
    let offered = modes["availableModes"].as_array()?;
    let offered = offered.iter().filter_map(|mode| name(&mode["id"]));
    let current = name(&modes["currentModeId"])?;
    Some(Modes {
        setter: ModeSetter::Mode,
        offered: offered.collect(),
        current,
    })
}

/// A name, unless it is too long for one.
fn name(value: &Value) -> Option<String> {
    let name = value.as_str()?;
    (name.len() <= NAME_BYTES_MAX).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_have_a_bound() {
        let named = |name: &str| opened(&json!({ "sessionId": name })).is_ok();
        assert!(named(&"x".repeat(NAME_BYTES_MAX)));
        assert!(!named(&"x".repeat(NAME_BYTES_MAX + 1)));
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        let offered =
            json!({"modes":{"currentModeId":"a","availableModes":[{"id":"a"},{"id":long}]}});
        assert_eq!(modes(&offered).unwrap().offered, ["a"]);
    }

    #[test]
    fn abilities_are_what_the_agent_says_and_nothing_else() {
        let told = json!({"protocolVersion":1,
            "agentCapabilities":{"loadSession":true,"promptCapabilities":{"image":true},
                "sessionCapabilities":{"fork":{},"list":{}}},
            "_meta":{"steering":{"supported":true}}});
        let can = greeting(&told).unwrap().can;
        assert!(can.load && can.fork && can.steer && can.images);
        let nothing = greeting(&json!({"protocolVersion":1})).unwrap().can;
        assert_eq!(nothing, ThreadAbilities::default());
    }

    #[test]
    fn only_version_one_is_spoken() {
        let greeting = |version: Value| {
            greeting(&json!({"protocolVersion":version,"agentCapabilities":{"loadSession":true}}))
        };
        assert!(greeting(json!(1)).unwrap().can.load);
        assert_eq!(
            greeting(json!(2)).unwrap_err().to_string(),
            "the agent speaks version 2 of the Agent Client Protocol, not 1"
        );
        assert!(greeting(Value::Null).is_err());
    }

    #[test]
    fn modes_are_found_in_options_before_the_older_list() {
        let options = json!([
            {"id":"model","category":"model","type":"select","currentValue":"x","options":[]},
            {"id":"mode","category":"mode","type":"select","currentValue":"auto",
             "options":[{"value":"default","name":"Default"},
                        {"group":"g","name":"G","options":[{"value":"plan","name":"Plan"}]}]},
        ]);
        let older = json!({"currentModeId":"auto","availableModes":[{"id":"default","name":"D"}]});
        let both = json!({"sessionId":"s","configOptions":options,"modes":older});
        let opened = opened(&both).unwrap();
        assert_eq!(opened.known_as.as_deref(), Some("s"));
        assert_eq!(
            opened.modes.unwrap(),
            Modes {
                setter: ModeSetter::Config {
                    config: "mode".into()
                },
                offered: vec!["default".into(), "plan".into()],
                current: "auto".into(),
            }
        );
        assert_eq!(
            modes(&json!({"modes":older})).unwrap().setter,
            ModeSetter::Mode
        );
        assert_eq!(
            loaded(&Value::Null),
            Opened {
                known_as: None,
                modes: None
            }
        );
    }

    #[test]
    fn a_conversation_without_a_name_is_refused() {
        assert_eq!(opened(&json!({})), Err(SetupError::NoName));
    }
}
