//! A form of the agent (`elicitation/create`): the JSON schema that the protocol allows, as fields.

use super::ask::{LABEL_BYTES_MAX, TITLE_BYTES_MAX, one_line};
use box_api::decision::{Field, FieldChoice, FieldKind, Form};
use serde_json::{Map, Value};

const FIELDS_MAX: usize = 32;
const CHOICES_MAX: usize = 64;
/// What claude adds to a question's key for an answer in free words.
const FREE_WORDS: &str = "_custom";

/// Reads the form of a request. `None`: it has no field, too many, or needs one of another kind.
pub fn read(params: &Value) -> Option<Form> {
    let schema = &params["requestedSchema"];
    let properties = schema["properties"].as_object()?;
    let required = schema["required"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let needed = |key: &str| required.iter().any(|name| name == key);
    let mut fields = Vec::new();
    for (key, schema) in properties {
        match kind(schema) {
            Some(kind) => fields.push(field(key, schema, (kind, needed(key)), properties)),
            None if needed(key) => return None,
            None => {}
        }
    }
    let known = |name: &Value| fields.iter().any(|field| name == field.name.as_str());
    if fields.is_empty() || fields.len() > FIELDS_MAX || !required.iter().all(known) {
        return None;
    }
    let message = params["message"]
        .as_str()
        .map(|text| one_line(text, TITLE_BYTES_MAX));
    Some(Form {
        message: message.filter(|message| !message.is_empty()),
        fields,
    })
}

fn field(
    key: &str,
    schema: &Value,
    (kind, required): (FieldKind, bool),
    all: &Map<String, Value>,
) -> Field {
    let title = ["description", "title"]
        .iter()
        .find_map(|word| schema[word].as_str());
    let beside = key
        .strip_suffix(FREE_WORDS)
        .filter(|beside| all.contains_key(*beside));
    let default = Some(schema["default"].clone()).filter(|default| !default.is_null());
    Field {
        name: key.to_owned(),
        title: one_line(title.unwrap_or(key), TITLE_BYTES_MAX),
        kind,
        required,
        default,
        instead_of: beside.map(str::to_owned),
    }
}

fn kind(schema: &Value) -> Option<FieldKind> {
    if schema["type"] == "array" {
        return Some(FieldKind::Many {
            choices: choices(&schema["items"])?,
            count_min: schema["minItems"].as_u64(),
            count_max: schema["maxItems"].as_u64(),
        });
    }
    if let Some(choices) = choices(schema) {
        return Some(FieldKind::One { choices });
    }
    match schema["type"].as_str()? {
        "string" => Some(FieldKind::Text {
            chars_min: schema["minLength"].as_u64(),
            chars_max: schema["maxLength"].as_u64(),
        }),
        word @ ("number" | "integer") => Some(FieldKind::Number {
            whole: word == "integer",
            min: schema["minimum"].as_f64(),
            max: schema["maximum"].as_f64(),
        }),
        "boolean" => Some(FieldKind::YesNo),
        _ => None,
    }
}

/// The choices of `oneOf`, `anyOf` or `enum`.
fn choices(schema: &Value) -> Option<Vec<FieldChoice>> {
    let titled = ["oneOf", "anyOf"]
        .iter()
        .find_map(|word| schema[word].as_array());
    let choices: Vec<FieldChoice> = match (titled, schema["enum"].as_array()) {
        (Some(titled), _) => titled.iter().filter_map(titled_choice).collect(),
        (None, Some(values)) => values
            .iter()
            .enumerate()
            .filter_map(|(at, value)| choice(value, &schema["enumNames"][at]))
            .collect(),
        (None, None) => return None,
    };
    (!choices.is_empty() && choices.len() <= CHOICES_MAX).then_some(choices)
}

fn titled_choice(schema: &Value) -> Option<FieldChoice> {
    choice(&schema["const"], &schema["title"])
}

fn choice(value: &Value, label: &Value) -> Option<FieldChoice> {
    let value = value.as_str()?;
    Some(FieldChoice {
        value: value.to_owned(),
        label: one_line(label.as_str().unwrap_or(value), LABEL_BYTES_MAX),
    })
}
