//! Filling in a form at a terminal, one field after the other.

use box_api::DecisionId;
use box_api::control::ClientMessage;
use box_api::decision::{Field, FieldKind, Form, FormAnswer};
use box_api::thread::Decision;
use serde_json::{Map, Value};

/// What a person types that will not be asked.
pub(super) const NO: &str = "/no";

/// An answer on its way to the host.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Given {
    Option(String),
    Form(FormAnswer),
}

impl Given {
    pub(super) fn message(self, decision: DecisionId) -> ClientMessage {
        match self {
            Self::Option(option) => ClientMessage::Answer { decision, option },
            Self::Form(answer) => ClientMessage::AnswerForm { decision, answer },
        }
    }
}

/// A form somebody is filling in.
#[derive(Debug)]
pub(super) struct Filling {
    decision: DecisionId,
    form: Form,
    values: Map<String, Value>,
    /// The field that is being asked.
    at: usize,
}

/// What comes of a typed line.
#[derive(Debug, PartialEq)]
pub(super) enum Typed {
    /// The next field, or the same again after a word about why.
    Asks(Option<String>),
    Filled(FormAnswer),
}

impl Filling {
    /// A form that is more than one choice; others are answered by a number.
    pub(super) fn begin(decision: &Decision) -> Option<Self> {
        let form = decision
            .form
            .clone()
            .filter(|_| decision.options.is_empty())?;
        let mut filling = Self {
            decision: decision.decision,
            form,
            values: Map::new(),
            at: 0,
        };
        filling.skip_free_words();
        Some(filling)
    }

    pub(super) fn is_of(&self, decision: &Decision) -> bool {
        self.decision == decision.decision
    }

    /// What is asked now.
    pub(super) fn question(&self) -> String {
        self.form
            .fields
            .get(self.at)
            .map_or_else(String::new, question)
    }

    pub(super) fn typed(&mut self, line: &str) -> Typed {
        if line == NO {
            return Typed::Filled(FormAnswer::Decline);
        }
        let Some(field) = self.form.fields.get(self.at) else {
            return self.finish();
        };
        if line.is_empty() {
            if field.required && field.default.is_none() && !self.has_free_words(field) {
                return Typed::Asks(Some("this one must be answered".to_owned()));
            }
        } else {
            let value = Value::String(line.to_owned());
            match (field.read(&value), self.free_words(field)) {
                (Ok(_), _) => self.values.insert(field.name.clone(), value),
                (Err(_), Some(words)) => self.values.insert(words.name.clone(), value),
                (Err(error), None) => return Typed::Asks(Some(error.to_string())),
            };
        }
        self.at += 1;
        self.skip_free_words();
        if self.at < self.form.fields.len() {
            return Typed::Asks(None);
        }
        self.finish()
    }

    fn finish(&mut self) -> Typed {
        let values = std::mem::take(&mut self.values);
        match self.form.fill(&values) {
            Ok(_) => Typed::Filled(FormAnswer::Fill { values }),
            Err(error) => {
                self.at = 0;
                self.skip_free_words();
                Typed::Asks(Some(error.to_string()))
            }
        }
    }

    /// The field beside `field` that takes an answer in free words.
    fn free_words(&self, field: &Field) -> Option<&Field> {
        free_words(&self.form, field)
    }

    fn has_free_words(&self, field: &Field) -> bool {
        self.free_words(field).is_some()
    }

    fn skip_free_words(&mut self) {
        while self
            .form
            .fields
            .get(self.at)
            .is_some_and(|field| field.instead_of.is_some())
        {
            self.at += 1;
        }
    }
}

/// What a line that is no number means for a form that is one choice with free words beside it.
pub(super) fn in_free_words(decision: &Decision, line: &str) -> Option<FormAnswer> {
    let form = decision.form.as_ref()?;
    let only = form
        .fields
        .iter()
        .find(|field| field.instead_of.is_none())?;
    let words = free_words(form, only)?;
    let values = Map::from_iter([(words.name.clone(), Value::String(line.to_owned()))]);
    (!line.is_empty() && form.fill(&values).is_ok()).then_some(FormAnswer::Fill { values })
}

/// What *allow all* fills in: the first choice of everything that is one. `None`: it needs words.
pub(super) fn first_choices(form: &Form) -> Option<FormAnswer> {
    let first = |field: &Field| {
        let value = match &field.kind {
            FieldKind::One { choices } => Value::String(choices.first()?.value.clone()),
            FieldKind::Many { choices, .. } => Value::from(vec![choices.first()?.value.clone()]),
            FieldKind::YesNo => Value::Bool(true),
            FieldKind::Text { .. } | FieldKind::Number { .. } => return None,
        };
        Some((field.name.clone(), value))
    };
    let values: Map<String, Value> = form.fields.iter().filter_map(first).collect();
    form.fill(&values)
        .is_ok()
        .then_some(FormAnswer::Fill { values })
}

fn free_words<'f>(form: &'f Form, field: &Field) -> Option<&'f Field> {
    let beside = |other: &&Field| other.instead_of.as_deref() == Some(&field.name);
    form.fields.iter().find(beside)
}

fn question(field: &Field) -> String {
    let what = match &field.kind {
        FieldKind::One { choices } => format!("1-{}", choices.len()),
        FieldKind::Many { choices, .. } => format!("any of 1-{}, with commas", choices.len()),
        FieldKind::YesNo => "yes/no".to_owned(),
        FieldKind::Number { .. } => "a number".to_owned(),
        FieldKind::Text { .. } => "a text".to_owned(),
    };
    let default = match &field.default {
        Some(Value::String(text)) => format!("; else {text}"),
        Some(other) => format!("; else {other}"),
        None if field.required => String::new(),
        None => "; may be empty".to_owned(),
    };
    format!("{} [{what}{default}]: ", field.title)
}

#[cfg(test)]
mod tests {
    use super::*;
    use box_api::BoxId;
    use box_api::decision::FieldChoice;
    use box_api::thread::{DecisionKind, DecisionState};
    use serde_json::json;

    fn decision() -> Decision {
        let choice = |value: &str| FieldChoice {
            value: value.into(),
            label: value.to_uppercase(),
        };
        let field = |name: &str, kind, required, instead_of: Option<&str>| Field {
            name: name.into(),
            title: format!("{name}?"),
            kind,
            required,
            default: None,
            instead_of: instead_of.map(str::to_owned),
        };
        let text = || FieldKind::Text {
            chars_min: None,
            chars_max: None,
        };
        let one = FieldKind::One {
            choices: vec![choice("red"), choice("blue")],
        };
        let many = FieldKind::Many {
            choices: vec![choice("s"), choice("m")],
            count_min: None,
            count_max: None,
        };
        Decision {
            decision: DecisionId(4),
            box_id: BoxId::from_random([1; 10]),
            thread: None,
            about: DecisionKind::Question,
            title: "?".into(),
            call: None,
            options: Vec::new(),
            form: Some(Form {
                message: None,
                fields: vec![
                    field("colour", one, true, None),
                    field("colour_custom", text(), false, Some("colour")),
                    field("sizes", many, false, None),
                    field("sure", FieldKind::YesNo, true, None),
                ],
            }),
            text: None,
            state: DecisionState::Open,
        }
    }

    fn filled(lines: &[&str]) -> Result<FormAnswer, String> {
        let mut filling = Filling::begin(&decision()).unwrap();
        let mut last = String::new();
        for line in lines {
            match filling.typed(line) {
                Typed::Filled(answer) => return Ok(answer),
                Typed::Asks(why) => last = why.unwrap_or_else(|| filling.question()),
            }
        }
        Err(last)
    }

    fn fill(values: &Value) -> FormAnswer {
        let values = values.as_object().cloned().unwrap_or_default();
        FormAnswer::Fill { values }
    }

    #[test]
    fn fields_are_asked_one_after_the_other_and_sent_together() {
        assert_eq!(
            filled(&["2"]),
            Err("sizes? [any of 1-2, with commas; may be empty]: ".into())
        );
        assert_eq!(
            filled(&["2", "", "yes"]),
            Ok(fill(&json!({"colour":"2","sure":"yes"})))
        );
        assert_eq!(
            filled(&["teal", "1,2", "no"]),
            Ok(fill(
                &json!({"colour_custom":"teal","sizes":"1,2","sure":"no"})
            )),
            "words stand for the choice"
        );
    }

    #[test]
    fn what_does_not_fit_is_asked_again_and_no_is_no() {
        assert_eq!(
            filled(&["1", "x"]),
            Err("`sizes` is one of `s`, `m`".into())
        );
        assert_eq!(
            filled(&["1", "", ""]),
            Err("this one must be answered".into())
        );
        assert_eq!(filled(&["1", NO]), Ok(FormAnswer::Decline));
    }

    #[test]
    fn allow_all_takes_the_first_of_everything() {
        let form = decision().form.unwrap();
        assert_eq!(
            first_choices(&form),
            Some(fill(&json!({"colour":"red","sizes":["s"],"sure":true})))
        );
        let mut needs_words = form;
        needs_words.fields[1].instead_of = None;
        needs_words.fields[1].required = true;
        assert_eq!(first_choices(&needs_words), None);
    }
}
