//! What the agent asks a person: `session/request_permission` and `elicitation/create`.

use super::content::shorten;
use super::form;
use super::message::{RpcError, RpcId};
use super::update::CallUpdate;
use box_api::decision::{FieldKind, FillError, Form};
use box_api::thread::{DecisionKind, DecisionOption, OptionKind, ToolContent};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

const OPTIONS_MAX: usize = 64;
pub(super) const LABEL_BYTES_MAX: usize = 512;
pub(super) const TITLE_BYTES_MAX: usize = 4 << 10;
/// Longest request as it is saved with its thread, again with every change as long as it is open.
const ASK_BYTES_MAX: usize = 64 << 10;
/// Longest plan that is shown with its decision; it is in the journal whole.
const PLAN_BYTES_MAX: usize = 64 << 10;
/// What a switch out of planning is, as a tool (ACP's kind; claude's `ExitPlanMode`).
const SWITCH_MODE: &str = "switch_mode";

/// One open request of the agent, as far as a person is concerned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    pub about: DecisionKind,
    /// What is asked, one line.
    pub title: String,
    /// The tool call it belongs to.
    pub call: Option<String>,
    /// Empty for a form that is more than one choice.
    pub options: Vec<DecisionOption>,
    /// Of a question.
    #[serde(default)]
    pub sheet: Option<Form>,
    /// What is to be read first. It goes into the decision's row and is not kept here.
    #[serde(skip)]
    pub text: Option<String>,
}

impl Ask {
    /// Reads a permission request; the call in it is told as well, for some agents tell it nowhere
    /// else.
    ///
    /// # Errors
    /// What to answer when there is nothing in it a person could choose.
    pub fn permission(mut params: Value) -> Result<(Self, CallUpdate), RpcError> {
        let plan = plan_text(&params["toolCall"]);
        let call = CallUpdate::parse(
            params
                .get_mut("toolCall")
                .map(Value::take)
                .unwrap_or_default(),
        );
        let options = permission_options(&params["options"]);
        if options.is_empty() {
            return Err(invalid("a permission request needs options"));
        }
        let title = call
            .title
            .clone()
            .unwrap_or_else(|| "use a tool".to_owned());
        let id = Some(call.call.clone()).filter(|id| !id.is_empty());
        let (about, text) = if call.tool.as_deref() == Some(SWITCH_MODE) {
            (DecisionKind::Plan, plan.or_else(|| texts(&call)))
        } else {
            (DecisionKind::Permission, None)
        };
        let ask = Self {
            about,
            title: one_line(&title, TITLE_BYTES_MAX),
            call: id,
            options,
            sheet: None,
            text: text.map(|text| shorten(text, PLAN_BYTES_MAX)),
        };
        if ask.is_too_long() {
            return Err(invalid("a permission request has a bound on its length"));
        }
        Ok((ask, call))
    }

    /// Reads a form. `None`: it needs something a terminal cannot ask, or is too long, so that it
    /// can only be declined.
    pub fn form(params: &Value) -> Option<Self> {
        if params["mode"].as_str().is_some_and(|mode| mode != "form") {
            return None;
        }
        let sheet = form::read(params)?;
        let shown: Vec<_> = sheet
            .fields
            .iter()
            .filter(|field| field.instead_of.is_none())
            .collect();
        let single = match shown.as_slice() {
            [only] => Some(*only),
            _ => None,
        };
        let title = match (&sheet.message, single) {
            (Some(message), _) => message,
            (None, Some(only)) => &only.title,
            (None, None) => "the agent asks",
        };
        let ask = Self {
            about: DecisionKind::Question,
            title: one_line(title, TITLE_BYTES_MAX),
            call: params["toolCallId"].as_str().map(str::to_owned),
            options: single.map(|only| choices(&only.kind)).unwrap_or_default(),
            sheet: Some(sheet),
            text: None,
        };
        Some(ask).filter(|ask| !ask.is_too_long())
    }

    fn is_too_long(&self) -> bool {
        serde_json::to_vec(self).map_or(true, |saved| saved.len() > ASK_BYTES_MAX)
    }

    /// The result after a person chose `option`, one of [`Self::options`].
    pub fn answer(&self, option: &str) -> Value {
        if self.about != DecisionKind::Question {
            let outcome = json!({ "outcome": "selected", "optionId": option });
            return json!({ "outcome": outcome });
        }
        let only = self.sheet.as_ref().and_then(|sheet| {
            let mut shown = sheet.fields.iter();
            shown.find(|field| field.instead_of.is_none())
        });
        let content = only.map(|only| Map::from_iter([(only.name.clone(), json!(option))]));
        match content.map(|content| self.fill(&content)) {
            Some(Ok(content)) => accepted(&content),
            // Of a host that asked differently.
            Some(Err(_)) | None => declined(),
        }
    }

    /// The form's content, as the agent is to get it.
    ///
    /// # Errors
    /// [`FillError`]; a request without a form has no field.
    pub fn fill(&self, values: &Map<String, Value>) -> Result<Map<String, Value>, FillError> {
        match &self.sheet {
            Some(sheet) => sheet.fill(values),
            None => Err(FillError::Nothing),
        }
    }

    /// The option that says no to this and nothing else, chosen by its kind.
    pub fn rejecting(&self) -> Option<&DecisionOption> {
        let kinds = [OptionKind::RejectOnce, OptionKind::RejectAlways];
        let of_kind = |kind: &OptionKind| self.options.iter().find(|option| option.kind == *kind);
        kinds.iter().find_map(of_kind)
    }

    /// The result when nobody will answer.
    pub fn cancelled(&self) -> Value {
        match self.about {
            DecisionKind::Question => json!({ "action": "cancel" }),
            DecisionKind::Permission
            | DecisionKind::Plan
            | DecisionKind::Network
            | DecisionKind::Budget
            | DecisionKind::Push => {
                json!({ "outcome": { "outcome": "cancelled" } })
            }
        }
    }
}

/// The result for a form that was filled in.
pub fn accepted(content: &Map<String, Value>) -> Value {
    json!({ "action": "accept", "content": content })
}

/// The result for a form that cannot be shown, or that a person will not fill in.
pub fn declined() -> Value {
    json!({ "action": "decline" })
}

/// The request a `$/cancel_request` takes back.
pub fn taken_back(mut params: Value) -> RpcId {
    RpcId(
        params
            .get_mut("requestId")
            .map(Value::take)
            .unwrap_or_default(),
    )
}

/// What was filled in, in a line.
pub fn summary(content: &Map<String, Value>) -> String {
    let word = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let words = items.iter().map(|item| {
                item.as_str()
                    .map_or_else(|| item.to_string(), str::to_owned)
            });
            words.collect::<Vec<_>>().join(",")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    };
    let said: Vec<String> = match content.len() {
        1 => content.values().map(word).collect(),
        _ => content
            .iter()
            .map(|(name, value)| format!("{name}={}", word(value)))
            .collect(),
    };
    one_line(&said.join(" "), LABEL_BYTES_MAX)
}

/// The plan as claude puts it into the call's input.
fn plan_text(call: &Value) -> Option<String> {
    call["rawInput"]["plan"].as_str().map(str::to_owned)
}

fn texts(call: &CallUpdate) -> Option<String> {
    let texts: Vec<&str> = call
        .content
        .iter()
        .filter_map(|piece| match piece {
            ToolContent::Text { text } => Some(text.as_str()),
            ToolContent::Diff { .. } | ToolContent::Other { .. } => None,
        })
        .collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// What can be chosen where a form is but one choice.
fn choices(kind: &FieldKind) -> Vec<DecisionOption> {
    let option = |id: &str, label: &str| DecisionOption {
        id: id.to_owned(),
        label: label.to_owned(),
        kind: OptionKind::Choice,
    };
    match kind {
        FieldKind::One { choices } => choices
            .iter()
            .map(|choice| option(&choice.value, &choice.label))
            .collect(),
        FieldKind::YesNo => vec![option("yes", "yes"), option("no", "no")],
        FieldKind::Text { .. } | FieldKind::Number { .. } | FieldKind::Many { .. } => Vec::new(),
    }
}

/// Verbatim, but for a second one of the same id, which nobody could choose, and for labels that
/// are the same, which nobody could tell apart.
fn permission_options(options: &Value) -> Vec<DecisionOption> {
    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut read: Vec<DecisionOption> = Vec::new();
    for option in options.iter().take(OPTIONS_MAX) {
        let Some(id) = option["optionId"].as_str() else {
            continue;
        };
        if read.iter().any(|known| known.id == id) {
            continue;
        }
        let kind = match option["kind"].as_str().unwrap_or_default() {
            "allow_once" => OptionKind::AllowOnce,
            "allow_always" => OptionKind::AllowAlways,
            "reject_once" => OptionKind::RejectOnce,
            "reject_always" => OptionKind::RejectAlways,
            _ => OptionKind::Other,
        };
        let mut label = one_line(option["name"].as_str().unwrap_or(id), LABEL_BYTES_MAX);
        if read.iter().any(|known| known.label == label) {
            label = one_line(&format!("{label} ({id})"), LABEL_BYTES_MAX);
        }
        read.push(DecisionOption {
            id: id.to_owned(),
            label,
            kind,
        });
    }
    read
}

/// An agent must not be able to write rows of its own into a list.
pub(super) fn one_line(text: &str, bytes_max: usize) -> String {
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
mod tests;
