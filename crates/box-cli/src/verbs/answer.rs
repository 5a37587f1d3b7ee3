//! `box answer`: answers a decision; the first answer wins.

use super::{Ended, Print};
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::{Format, Output};
use box_api::DecisionId;
use box_api::control::{Outcome, Request};
use box_api::decision::FormAnswer;
use serde_json::{Map, Value};

/// Answer what `box decisions` lists
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box answer 12 allow\n  \
    box answer 13 once\n  \
    box answer 14 colour=blue sizes=s,m \"note=as small as you can\"\n  \
    box answer 14 --decline\n\n\
    An option is its id, its label, or `allow`, `always`, `reject`, `never` for the one of its kind;\n\
    where there are two of a kind, only the id or the label says which. A form is filled in field by\n\
    field, all in one line; a choice is its value, its label or its number.")]
pub(super) struct Args {
    /// The decision's number
    #[arg(value_name = "NUMBER")]
    decision: i64,
    /// One of its options, or what fills in its form
    #[arg(
        value_name = "OPTION|FIELD=VALUE",
        required_unless_present_any = ["form", "decline", "cancel"]
    )]
    words: Vec<String>,
    /// What fills in its form, as JSON
    #[arg(long, value_name = "JSON", value_parser = object, conflicts_with = "words")]
    form: Option<Object>,
    /// Say no: the agent goes on without an answer
    #[arg(long, conflicts_with_all = ["words", "form"])]
    decline: bool,
    /// Take the request away: to the agent it was cancelled
    #[arg(long, conflicts_with_all = ["words", "form", "decline"])]
    cancel: bool,
    #[command(flatten)]
    pub(super) print: Print,
}

#[derive(Debug, Clone)]
struct Object(Map<String, Value>);

fn object(text: &str) -> Result<Object, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(values)) => Ok(Object(values)),
        Ok(_) => Err("it is JSON, but no object of fields".to_owned()),
        Err(error) => Err(format!("it is not JSON: {error}")),
    }
}

/// What was said.
enum Said {
    Option(String),
    Form(FormAnswer),
}

pub(super) fn run(args: Args) -> Ended {
    let mut output = args.print.output();
    let decision = DecisionId(args.decision);
    let said = match (args.form, args.decline, args.cancel) {
        (Some(Object(values)), _, _) => Said::Form(FormAnswer::Fill { values }),
        (None, true, _) => Said::Form(FormAnswer::Decline),
        (None, false, true) => Said::Form(FormAnswer::Cancel),
        (None, false, false) => words(&mut output, decision, &args.words)?,
    };
    let request = match said {
        Said::Option(option) => Request::Answer { decision, option },
        Said::Form(answer) => Request::AnswerForm { decision, answer },
    };
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let outcome = client.ask(&mut output, &request)?;
    let Outcome::Nothing = outcome else {
        return Err(unexpected(&outcome));
    };
    if output.format() == Format::Json {
        output.object(&outcome)?;
    } else {
        output.note(&format!("decision {decision} is answered"));
    }
    Ok(0)
}

/// An option, or fields; only the decision itself says which, where an option could be both.
fn words(output: &mut Output, decision: DecisionId, words: &[String]) -> Result<Said, Complaint> {
    let fields = words.iter().all(|word| word.contains('='));
    match words {
        [only] if !fields || is_option(output, decision, only)? => Ok(Said::Option(only.clone())),
        _ if fields => Ok(Said::Form(FormAnswer::Fill {
            values: values(words),
        })),
        _ => {
            let told = "a decision is answered by one option, or by fields";
            Err(Complaint::usage("usage", told).hinted("`box answer <number> <field>=<value> …`"))
        }
    }
}

fn is_option(output: &mut Output, decision: DecisionId, word: &str) -> Result<bool, Complaint> {
    let client = host::reach(output, OtherBuild::Bear)?;
    let outcome = client.ask(output, &Request::Decisions { follow: false })?;
    let Outcome::Decisions { decisions } = outcome else {
        return Err(unexpected(&outcome));
    };
    let asked = decisions.iter().map(|waiting| &waiting.decision);
    let mut asked = asked.filter(|asked| asked.decision == decision);
    Ok(asked.any(|asked| {
        let mut options = asked.options.iter();
        options.any(|option| option.id == word || option.label == word)
    }))
}

/// Fields by their names; one that is said twice is a list.
fn values(words: &[String]) -> Map<String, Value> {
    let mut values: Map<String, Value> = Map::new();
    for (name, value) in words.iter().filter_map(|word| word.split_once('=')) {
        let value = Value::String(value.to_owned());
        match values.get_mut(name) {
            None => {
                values.insert(name.to_owned(), value);
            }
            Some(Value::Array(list)) => list.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_are_read_by_name_and_lists_by_saying_them_again() {
        let words = ["a=1", "b=x=y", "s=p", "s=q", "s=r", "empty="].map(str::to_owned);
        assert_eq!(
            Value::Object(values(&words)),
            json!({"a":"1","b":"x=y","s":["p","q","r"],"empty":""})
        );
    }

    #[test]
    fn a_form_is_an_object() {
        assert!(object(r#"{"a":1}"#).is_ok());
        assert!(object("[1]").unwrap_err().contains("no object"));
        assert!(object("{").unwrap_err().contains("not JSON"));
    }
}
