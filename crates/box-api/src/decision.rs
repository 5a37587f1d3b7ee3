//! What a person is asked that is no list of options: forms, and how they are answered.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A form of an agent (`elicitation/create`), field by field in the agent's order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Form {
    /// What the agent says above it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    pub fields: Vec<Field>,
}

/// One field of a form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Field {
    /// The agent's key, verbatim; what an answer is named by.
    pub name: String,
    /// What is asked.
    pub title: String,
    pub kind: FieldKind,
    pub required: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The field beside which this one takes an answer in free words (`<that field>_custom`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<String>,
}

/// What may be filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FieldKind {
    /// Characters; no bound is no field.
    Text {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        chars_min: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        chars_max: Option<u64>,
    },
    Number {
        /// Whole numbers only.
        whole: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<f64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<f64>,
    },
    YesNo,
    /// One of these.
    One {
        choices: Vec<FieldChoice>,
    },
    /// Any of these.
    Many {
        choices: Vec<FieldChoice>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        count_min: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        count_max: Option<u64>,
    },
}

/// One choice of a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct FieldChoice {
    /// The agent's own word for it.
    pub value: String,
    pub label: String,
}

/// What a person does with a decision, besides choosing one of its options.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum FormAnswer {
    /// Fills it in: values by the names of fields, as JSON of the field's own type; a text is taken
    /// for whatever type the field has.
    Fill { values: Map<String, Value> },
    /// Says no to being asked; the agent goes on without an answer.
    Decline,
    /// Takes the request away: to the agent it was cancelled.
    Cancel,
}

/// Why a form is not filled in as it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FillError {
    #[error("the form has no field `{0}`")]
    NoField(String),
    #[error("the field `{0}` must be filled in")]
    Missing(String),
    #[error("`{field}` is {should}")]
    Value { field: String, should: String },
    #[error("nothing was filled in")]
    Nothing,
}

impl Form {
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The form's content as the agent gets it, from what a person filled in.
    ///
    /// # Errors
    /// [`FillError`] names the field.
    pub fn fill(&self, values: &Map<String, Value>) -> Result<Map<String, Value>, FillError> {
        let mut content = Map::new();
        for (name, value) in values {
            let field = self
                .field(name)
                .ok_or_else(|| FillError::NoField(name.clone()))?;
            let read = field.read(value)?;
            content.insert(name.clone(), read);
        }
        for field in &self.fields {
            let answered = content.contains_key(&field.name);
            if let (false, Some(default)) = (
                answered || self.is_replaced(field, &content),
                &field.default,
            ) {
                content.insert(field.name.clone(), default.clone());
            } else if field.required && !answered && !self.is_replaced(field, &content) {
                return Err(FillError::Missing(field.name.clone()));
            }
        }
        if content.is_empty() && !self.fields.is_empty() {
            return Err(FillError::Nothing);
        }
        Ok(content)
    }

    /// Whether free words were given in place of this field.
    fn is_replaced(&self, field: &Field, content: &Map<String, Value>) -> bool {
        self.fields.iter().any(|other| {
            other.instead_of.as_deref() == Some(&field.name) && content.contains_key(&other.name)
        })
    }
}

impl Field {
    /// A value as the agent gets it.
    ///
    /// # Errors
    /// [`FillError::Value`] says what it should be.
    pub fn read(&self, value: &Value) -> Result<Value, FillError> {
        self.kind.read(value).map_err(|should| FillError::Value {
            field: self.name.clone(),
            should,
        })
    }
}

impl FieldKind {
    /// The value as the agent gets it. `Err` says what it should be.
    fn read(&self, value: &Value) -> Result<Value, String> {
        match self {
            Self::Text {
                chars_min,
                chars_max,
            } => {
                let text = value.as_str().ok_or("a text")?;
                let chars = text.chars().count() as u64;
                if chars_min.is_some_and(|min| chars < min)
                    || chars_max.is_some_and(|max| chars > max)
                {
                    return Err(format!(
                        "a text of {}",
                        range(*chars_min, *chars_max, "characters")
                    ));
                }
                Ok(value.clone())
            }
            Self::Number { whole, min, max } => {
                let digits = if *whole { Digits::Whole } else { Digits::Any };
                number(value, digits, (*min, *max))
            }
            Self::YesNo => match value {
                Value::Bool(_) => Ok(value.clone()),
                Value::String(word) => match word.as_str() {
                    "yes" | "true" | "on" | "y" => Ok(Value::Bool(true)),
                    "no" | "false" | "off" | "n" => Ok(Value::Bool(false)),
                    _ => Err("`yes` or `no`".to_owned()),
                },
                Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                    Err("`yes` or `no`".to_owned())
                }
            },
            Self::One { choices } => {
                let word = value.as_str().ok_or_else(|| one_of(choices))?;
                chosen(choices, word).map(|choice| Value::String(choice.value.clone()))
            }
            Self::Many {
                choices,
                count_min,
                count_max,
            } => many(value, choices, (*count_min, *count_max)),
        }
    }
}

/// Which numbers a field takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Digits {
    Whole,
    Any,
}

fn number(
    value: &Value,
    digits: Digits,
    (min, max): (Option<f64>, Option<f64>),
) -> Result<Value, String> {
    let should = || {
        let kind = match digits {
            Digits::Whole => "a whole number",
            Digits::Any => "a number",
        };
        match (min, max) {
            (None, None) => kind.to_owned(),
            (Some(min), None) => format!("{kind} from {min} on"),
            (None, Some(max)) => format!("{kind} up to {max}"),
            (Some(min), Some(max)) => format!("{kind} from {min} to {max}"),
        }
    };
    let parsed: Value = match value {
        Value::Number(_) => value.clone(),
        Value::String(text) => serde_json::from_str(text.trim()).map_err(|_| should())?,
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            return Err(should());
        }
    };
    let number = parsed.as_f64().ok_or_else(should)?;
    let fits = min.is_none_or(|min| number >= min) && max.is_none_or(|max| number <= max);
    if !fits || (digits == Digits::Whole && !parsed.is_i64() && !parsed.is_u64()) {
        return Err(should());
    }
    Ok(parsed)
}

fn many(
    value: &Value,
    choices: &[FieldChoice],
    (min, max): (Option<u64>, Option<u64>),
) -> Result<Value, String> {
    let words: Vec<&str> = match value {
        Value::Array(items) => items
            .iter()
            .map(|item| item.as_str().ok_or_else(|| one_of(choices)))
            .collect::<Result<_, _>>()?,
        // One that has a comma in its name is said alone, or as JSON.
        Value::String(text) if chosen(choices, text).is_ok() => vec![text],
        Value::String(text) => text
            .split(',')
            .map(str::trim)
            .filter(|word| !word.is_empty())
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            return Err(one_of(choices));
        }
    };
    let mut values: Vec<Value> = Vec::new();
    for word in words {
        let value = Value::String(chosen(choices, word)?.value.clone());
        if !values.contains(&value) {
            values.push(value);
        }
    }
    let count = values.len() as u64;
    if min.is_some_and(|min| count < min) || max.is_some_and(|max| count > max) {
        return Err(range(min, max, "of its choices"));
    }
    Ok(Value::Array(values))
}

/// The choice meant by its value, its label, or its place from 1 on, in this order.
fn chosen<'a>(choices: &'a [FieldChoice], word: &str) -> Result<&'a FieldChoice, String> {
    let by_place = || {
        let place: usize = word.parse().ok()?;
        choices.get(place.checked_sub(1)?)
    };
    choices
        .iter()
        .find(|choice| choice.value == word)
        .or_else(|| choices.iter().find(|choice| choice.label == word))
        .or_else(by_place)
        .ok_or_else(|| one_of(choices))
}

fn one_of(choices: &[FieldChoice]) -> String {
    let words: Vec<String> = choices
        .iter()
        .map(|choice| format!("`{}`", choice.value))
        .collect();
    format!("one of {}", words.join(", "))
}

fn range(min: Option<u64>, max: Option<u64>, what: &str) -> String {
    match (min, max) {
        (Some(min), Some(max)) if min == max => format!("{min} {what}"),
        (Some(min), Some(max)) => format!("{min} to {max} {what}"),
        (Some(min), None) => format!("at least {min} {what}"),
        (None, Some(max)) => format!("at most {max} {what}"),
        (None, None) => what.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn field(name: &str, kind: FieldKind) -> Field {
        Field {
            name: name.into(),
            title: name.into(),
            kind,
            required: false,
            default: None,
            instead_of: None,
        }
    }

    fn choices(values: &[&str]) -> Vec<FieldChoice> {
        let choice = |value: &&str| FieldChoice {
            value: (*value).to_owned(),
            label: value.to_uppercase(),
        };
        values.iter().map(choice).collect()
    }

    fn form() -> Form {
        let many = FieldKind::Many {
            choices: choices(&["s", "m", "l"]),
            count_min: Some(1),
            count_max: Some(2),
        };
        let colours = FieldKind::One {
            choices: choices(&["red", "blue"]),
        };
        let mut colour = field("colour", colours);
        colour.required = true;
        let mut custom = field(
            "colour_custom",
            FieldKind::Text {
                chars_min: None,
                chars_max: Some(5),
            },
        );
        custom.instead_of = Some("colour".into());
        let mut count = field(
            "count",
            FieldKind::Number {
                whole: true,
                min: Some(1.0),
                max: None,
            },
        );
        count.default = Some(json!(3));
        Form {
            message: None,
            fields: vec![
                colour,
                custom,
                field("sizes", many),
                field("sure", FieldKind::YesNo),
                count,
            ],
        }
    }

    fn fill(values: &Value) -> Result<Value, String> {
        let values = values.as_object().cloned().unwrap_or_default();
        form()
            .fill(&values)
            .map(Value::Object)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn texts_become_what_the_fields_are() {
        assert_eq!(
            fill(&json!({"colour":"2","sizes":"S, l","sure":"yes","count":"7"})),
            Ok(json!({"colour":"blue","sizes":["s","l"],"sure":true,"count":7}))
        );
        assert_eq!(
            fill(&json!({"colour":"RED","sizes":["m","m"],"sure":false})),
            Ok(json!({"colour":"red","sizes":["m"],"sure":false,"count":3})),
            "what is not said has its default"
        );
    }

    #[test]
    fn free_words_stand_for_the_choice_beside_them() {
        assert_eq!(
            fill(&json!({"colour_custom":"teal"})),
            Ok(json!({"colour_custom":"teal","count":3}))
        );
        assert_eq!(
            fill(&json!({"colour_custom":"purple"})),
            Err("`colour_custom` is a text of at most 5 characters".into())
        );
    }

    #[test]
    fn what_does_not_fit_is_named() {
        assert_eq!(
            fill(&json!({})),
            Err("the field `colour` must be filled in".into())
        );
        assert_eq!(
            fill(&json!({"colour":"green"})),
            Err("`colour` is one of `red`, `blue`".into())
        );
        assert_eq!(
            fill(&json!({"colour":"0"})),
            Err("`colour` is one of `red`, `blue`".into())
        );
        assert_eq!(
            fill(&json!({"size":"s"})),
            Err("the form has no field `size`".into())
        );
        assert_eq!(
            fill(&json!({"colour":"red","sizes":"s,m,l"})),
            Err("`sizes` is 1 to 2 of its choices".into())
        );
        assert_eq!(
            fill(&json!({"colour":"red","count":"1.5"})),
            Err("`count` is a whole number from 1 on".into())
        );
        assert_eq!(
            fill(&json!({"colour":"red","sure":"maybe"})),
            Err("`sure` is `yes` or `no`".into())
        );
    }
}
