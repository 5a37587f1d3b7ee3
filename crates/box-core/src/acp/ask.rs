//! What the agent asks a person: `session/request_permission` and `elicitation/create`.

use super::content::shorten;
use super::message::{RpcError, RpcId};
use super::update::CallUpdate;
use box_api::thread::{DecisionKind, DecisionOption, OptionKind};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

const OPTIONS_MAX: usize = 64;
const FIELDS_MAX: usize = 16;
const LABEL_BYTES_MAX: usize = 512;
const TITLE_BYTES_MAX: usize = 4 << 10;
/// Longest request as it is saved with its thread, again with every change as long as it is open.
const ASK_BYTES_MAX: usize = 64 << 10;

/// One open request of the agent, as far as a person is concerned. A form with several choices is
/// asked one choice after the other and answered once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    pub about: DecisionKind,
    /// What is asked, one line.
    pub title: String,
    /// The tool call it belongs to.
    pub call: Option<String>,
    /// Never empty.
    pub options: Vec<DecisionOption>,
    form: Option<Form>,
}

/// The rest of a form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Form {
    now: Field,
    /// In reverse: the next one is the last.
    later: Vec<Field>,
    answers: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Field {
    key: String,
    title: String,
    options: Vec<DecisionOption>,
    /// Whether the answer is a list of one.
    list: bool,
}

/// What an answer leads to.
#[derive(Debug, Clone, PartialEq)]
pub enum Answered {
    /// The result to send.
    Result(Value),
    /// The form has another choice.
    Next(Ask),
}

impl Ask {
    /// Reads a permission request; the call in it is told as well, for some agents tell it nowhere
    /// else.
    ///
    /// # Errors
    /// What to answer when there is nothing in it a person could choose.
    pub fn permission(mut params: Value) -> Result<(Self, CallUpdate), RpcError> {
        let call = CallUpdate::parse(params["toolCall"].take());
        let options = permission_options(&params["options"]);
        if options.is_empty() {
            return Err(invalid("a permission request needs options"));
        }
        let title = call
            .title
            .clone()
            .unwrap_or_else(|| "use a tool".to_owned());
        let id = Some(call.call.clone()).filter(|id| !id.is_empty());
        let ask = Self {
            about: DecisionKind::Permission,
            title: one_line(&title, TITLE_BYTES_MAX),
            call: id,
            options,
            form: None,
        };
        if ask.is_too_long() {
            return Err(invalid("a permission request has a bound on its length"));
        }
        Ok((ask, call))
    }

    /// Reads a form. `None`: it has no choice, or needs something besides choices, or is too long,
    /// so that it can only be declined.
    pub fn form(params: &Value) -> Option<Self> {
        let schema = &params["requestedSchema"];
        if params["mode"].as_str().is_some_and(|mode| mode != "form") {
            return None;
        }
        let properties = schema["properties"].as_object()?;
        let message = params["message"].as_str().unwrap_or_default();
        let mut fields: Vec<Field> = properties
            .iter()
            .filter_map(|(key, field)| Field::parse(key, field))
            .collect();
        let needed = schema["required"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let shown = |key: &Value| fields.iter().any(|field| key == field.key.as_str());
        if fields.len() > FIELDS_MAX || !needed.iter().all(shown) {
            return None;
        }
        if let [only] = fields.as_mut_slice() {
            message.clone_into(&mut only.title);
        }
        fields.reverse();
        let now = fields.pop()?;
        let call = params["toolCallId"].as_str().map(str::to_owned);
        let form = Form {
            now,
            later: fields,
            answers: Map::new(),
        };
        Some(Self::field(form, call)).filter(|ask| !ask.is_too_long())
    }

    fn is_too_long(&self) -> bool {
        serde_json::to_vec(self).map_or(true, |saved| saved.len() > ASK_BYTES_MAX)
    }

    fn field(form: Form, call: Option<String>) -> Self {
        Self {
            about: DecisionKind::Question,
            title: one_line(&form.now.title, TITLE_BYTES_MAX),
            call,
            options: form.now.options.clone(),
            form: Some(form),
        }
    }

    /// The result, or the next choice, after a person chose `option`, one of [`Self::options`].
    pub fn answer(self, option: &str) -> Answered {
        let Some(mut form) = self.form else {
            let outcome = json!({ "outcome": "selected", "optionId": option });
            return Answered::Result(json!({ "outcome": outcome }));
        };
        let value = if form.now.list {
            json!([option])
        } else {
            json!(option)
        };
        form.answers.insert(form.now.key, value);
        match form.later.pop() {
            Some(next) => Answered::Next(Self::field(Form { now: next, ..form }, self.call)),
            None => Answered::Result(json!({ "action": "accept", "content": form.answers })),
        }
    }

    /// The result when nobody will answer.
    pub fn cancelled(&self) -> Value {
        match self.about {
            DecisionKind::Question => json!({ "action": "cancel" }),
            DecisionKind::Permission | DecisionKind::Network | DecisionKind::Push => {
                json!({ "outcome": { "outcome": "cancelled" } })
            }
        }
    }
}

/// The result for a form that cannot be shown.
pub fn declined() -> Value {
    json!({ "action": "decline" })
}

/// The request a `$/cancel_request` takes back.
pub fn taken_back(mut params: Value) -> RpcId {
    RpcId(params["requestId"].take())
}

impl Field {
    /// A field that is a choice: a string with `oneOf` or `enum`, or a list of such.
    fn parse(key: &str, schema: &Value) -> Option<Self> {
        let list = schema["type"] == "array";
        let choice = if list { &schema["items"] } else { schema };
        let titled = ["oneOf", "anyOf"]
            .iter()
            .find_map(|word| choice[word].as_array());
        let options: Vec<DecisionOption> = match (titled, choice["enum"].as_array()) {
            (Some(titled), _) => titled.iter().filter_map(titled_choice).collect(),
            (None, Some(values)) => values.iter().filter_map(|v| choice_of(v, v)).collect(),
            (None, None) => Vec::new(),
        };
        if options.is_empty() || options.len() > OPTIONS_MAX {
            return None;
        }
        let title = ["description", "title"]
            .iter()
            .find_map(|word| schema[word].as_str());
        Some(Self {
            key: key.to_owned(),
            title: title.unwrap_or(key).to_owned(),
            options,
            list,
        })
    }
}

fn titled_choice(choice: &Value) -> Option<DecisionOption> {
    let label = if choice["title"].is_string() {
        &choice["title"]
    } else {
        &choice["const"]
    };
    choice_of(&choice["const"], label)
}

fn choice_of(value: &Value, label: &Value) -> Option<DecisionOption> {
    let label = one_line(label.as_str()?, LABEL_BYTES_MAX);
    Some(DecisionOption {
        id: value.as_str()?.to_owned(),
        label,
        kind: OptionKind::Choice,
    })
}

fn permission_options(options: &Value) -> Vec<DecisionOption> {
    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let option = |option: &Value| {
        let id = option["optionId"].as_str()?;
        let label = option["name"].as_str().unwrap_or(id);
        let kind = match option["kind"].as_str().unwrap_or_default() {
            "allow_once" => OptionKind::AllowOnce,
            "allow_always" => OptionKind::AllowAlways,
            "reject_once" => OptionKind::RejectOnce,
            "reject_always" => OptionKind::RejectAlways,
            _ => OptionKind::Other,
        };
        let label = one_line(label, LABEL_BYTES_MAX);
        Some(DecisionOption {
            id: id.to_owned(),
            label,
            kind,
        })
    };
    options
        .iter()
        .filter_map(option)
        .take(OPTIONS_MAX)
        .collect()
}

/// An agent must not be able to write rows of its own into a list.
fn one_line(text: &str, bytes_max: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    shorten(line, bytes_max)
}

fn invalid(message: &str) -> RpcError {
    RpcError {
        code: -32602,
        message: message.to_owned(),
        data: Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permission_keeps_its_options_verbatim() {
        let (ask, call) = Ask::permission(json!({
            "sessionId": "s",
            "toolCall": {"toolCallId":"t1","title":"touch\nmade.txt","status":"pending"},
            "options": [
                {"optionId":"proceed_once","name":"Yes","kind":"allow_once"},
                {"optionId":"x","kind":"something_new"},
                {"name":"no id"},
            ],
        }))
        .unwrap();
        let option = |id: &str, label: &str, kind| DecisionOption {
            id: id.into(),
            label: label.into(),
            kind,
        };
        assert_eq!(
            ask.options,
            [
                option("proceed_once", "Yes", OptionKind::AllowOnce),
                option("x", "x", OptionKind::Other)
            ]
        );
        assert_eq!(
            (ask.title.as_str(), ask.call.as_deref()),
            ("touch made.txt", Some("t1"))
        );
        assert_eq!(call.call, "t1");
        assert_eq!(ask.cancelled(), json!({"outcome":{"outcome":"cancelled"}}));
        assert_eq!(
            ask.answer("proceed_once"),
            Answered::Result(json!({"outcome":{"outcome":"selected","optionId":"proceed_once"}}))
        );
        assert_eq!(
            Ask::permission(json!({"toolCall":{}})).unwrap_err().code,
            -32602
        );
    }

    #[test]
    fn a_form_of_two_questions_is_asked_one_by_one_and_answered_once() {
        let ask = Ask::form(&json!({
            "mode": "form", "message": "Please answer", "toolCallId": "t2",
            "requestedSchema": {"type":"object","properties":{
                "question_0": {"type":"string","description":"Which colour?",
                    "oneOf":[{"const":"red","title":"Red"},{"const":"blue"}]},
                "question_0_custom": {"type":"string","title":"Other"},
                "question_1": {"type":"array","title":"Sizes","items":{"enum":["s","m"]}},
            }},
        }))
        .unwrap();
        assert_eq!(ask.title, "Which colour?");
        assert_eq!(ask.call.as_deref(), Some("t2"));
        assert_eq!(ask.options[0].label, "Red");
        let Answered::Next(next) = ask.answer("blue") else {
            panic!("one question is left")
        };
        assert_eq!(next.title, "Sizes");
        assert_eq!(
            next.answer("m"),
            Answered::Result(json!({"action":"accept",
                "content":{"question_0":"blue","question_1":["m"]}}))
        );
    }

    #[test]
    fn a_request_too_long_to_be_saved_is_refused() {
        let long = "x".repeat(ASK_BYTES_MAX);
        let permission = |id: &str| {
            Ask::permission(json!({"toolCall":{"toolCallId":"t"},"options":[{"optionId":id}]}))
        };
        assert!(permission("short").is_ok());
        assert_eq!(permission(&long).unwrap_err().code, -32602);
        let form = |value: &str, key: &str, call: &str| {
            Ask::form(&json!({"message":"m","toolCallId":call,
                "requestedSchema":{"properties":{key:{"enum":[value]}}}}))
        };
        assert!(form("a", "q", "t").is_some());
        for (value, key, call) in [
            (long.as_str(), "q", "t"),
            ("a", &long, "t"),
            ("a", "q", &long),
        ] {
            assert_eq!(form(value, key, call), None);
        }
    }

    #[test]
    fn a_single_question_is_titled_by_the_message() {
        let ask = Ask::form(&json!({
            "message": "Which?",
            "requestedSchema": {"properties":{"q":{"type":"string","title":"Q","enum":["a"]}}},
        }))
        .unwrap();
        assert_eq!(ask.title, "Which?");
        assert_eq!(ask.cancelled(), json!({"action":"cancel"}));
    }

    #[test]
    fn forms_that_need_more_than_a_choice_are_not_asked() {
        let form = |mode: &str, properties: Value, required: Value| {
            Ask::form(&json!({"mode":mode,"message":"m",
                "requestedSchema":{"properties":properties,"required":required}}))
        };
        let choice = json!({"q":{"enum":["a"]},"name":{"type":"string"}});
        assert!(
            form("form", choice.clone(), json!(["q"])).is_some(),
            "positive control"
        );
        assert_eq!(form("form", choice.clone(), json!(["q", "name"])), None);
        assert_eq!(form("url", choice, json!([])), None);
        assert_eq!(
            form("form", json!({"name":{"type":"string"}}), json!([])),
            None
        );
        assert_eq!(Ask::form(&json!({"message":"m"})), None);
    }
}
