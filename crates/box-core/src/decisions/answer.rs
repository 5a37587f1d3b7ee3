//! Answers of people: who may, what is meant, who was first.

use super::{Record, get};
use crate::budget;
use crate::caller::Caller;
use crate::host::Host;
use crate::network;
use crate::store::StoreError;
use crate::thread::{AnswerFailure, ThreadError};
use crate::watch::{self, Awake};
use box_api::decision::{Field, FillError, Form, FormAnswer};
use box_api::thread::{DecisionKind, DecisionOption, DecisionState, OptionKind};
use box_api::{BoxId, DecisionId};
use std::sync::Arc;

/// Why an answer was not taken.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    #[error("there is no decision {0}")]
    Unknown(DecisionId),
    #[error("decision {decision} {}", over(state, who.as_deref(), note.as_deref()))]
    Over {
        decision: DecisionId,
        state: DecisionState,
        who: Option<String>,
        note: Option<String>,
    },
    #[error("`{option}` is not one of the options of decision {decision}")]
    NoSuchOption {
        decision: DecisionId,
        option: String,
        options: Vec<String>,
    },
    #[error("decision {decision} has more than one option for `{word}`")]
    Ambiguous {
        decision: DecisionId,
        word: String,
        options: Vec<DecisionOption>,
    },
    #[error("decision {decision} is a form to be filled in")]
    IsForm { decision: DecisionId, form: Form },
    #[error("decision {decision} is no form; choose one of its options")]
    NoForm {
        decision: DecisionId,
        options: Vec<String>,
    },
    #[error("decision {decision} is not answered: {error}")]
    Fill {
        decision: DecisionId,
        error: FillError,
        fields: Vec<String>,
    },
    #[error(transparent)]
    Thread(#[from] ThreadError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AnswerError {
    /// What the person can do now.
    pub fn hint(&self) -> Option<String> {
        let quoted = |words: &[String]| {
            let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            words.join(", ")
        };
        match self {
            Self::NoSuchOption { options, .. } | Self::NoForm { options, .. } => {
                Some(format!("options: {}", quoted(options)))
            }
            Self::Ambiguous { options, .. } => {
                let told = |option: &DecisionOption| format!("`{}` ({})", option.id, option.label);
                let told: Vec<String> = options.iter().map(told).collect();
                Some(format!("say which: {}", told.join(", ")))
            }
            Self::IsForm { decision, form } => {
                let field = |field: &Field| format!("{}=…", field.name);
                let fields: Vec<String> = form.fields.iter().map(field).collect();
                Some(format!("`box answer {decision} {}`", fields.join(" ")))
            }
            Self::Fill { fields, .. } => Some(format!("fields: {}", quoted(fields))),
            Self::Unknown(_) | Self::Over { .. } | Self::Thread(_) | Self::Store(_) => None,
        }
    }
}

fn over(state: &DecisionState, who: Option<&str>, note: Option<&str>) -> String {
    let why = note.map(|note| format!(" – {note}")).unwrap_or_default();
    let by = who.map(|who| format!(" by {who}")).unwrap_or_default();
    match state {
        DecisionState::Open => "is open".to_owned(),
        DecisionState::Answered { option } => format!("was answered{by}: `{option}`{why}"),
        DecisionState::Cancelled => format!("was cancelled{by}{why}"),
        DecisionState::Lost { reason } => format!("is lost: {reason}"),
    }
}

/// Answers a decision of the caller. `option` is an option's id, its label, or `allow`, `reject`
/// and the like, which mean the first option of that kind. `by` is told to whoever comes second.
///
/// # Errors
/// [`AnswerError`]
pub async fn answer(
    host: &Arc<Host>,
    caller: &Caller,
    id: DecisionId,
    option: &str,
    by: &str,
) -> Result<(), AnswerError> {
    let record = find(host, caller, id).await?;
    let option = open_option(&record, option)?;
    let Some(thread) = record.decision.thread else {
        if record.decision.about == DecisionKind::Budget {
            return budget::answer(host, record, option, by.to_owned()).await;
        }
        return network::answer(host, record, option, by.to_owned()).await;
    };
    let handle = host.threads.handle(host, thread).await?;
    // The agent hears the answer only while its box runs.
    let _awake = touched(host, handle.box_id()).await;
    let answered = handle.answer(id, option, by.to_owned()).await?;
    told(host, caller, &record, answered).await
}

/// Fills in a form, declines it, or takes a request away. A request that is no form is declined by
/// the option of its own that says no.
///
/// # Errors
/// [`AnswerError`]
pub async fn answer_form(
    host: &Arc<Host>,
    caller: &Caller,
    id: DecisionId,
    answer: FormAnswer,
    by: &str,
) -> Result<(), AnswerError> {
    let record = find(host, caller, id).await?;
    is_open(&record)?;
    let decision = &record.decision;
    let ids = || {
        decision
            .options
            .iter()
            .map(|option| option.id.clone())
            .collect()
    };
    if decision.form.is_none() && matches!(answer, FormAnswer::Fill { .. }) {
        let options = ids();
        return Err(AnswerError::NoForm {
            decision: id,
            options,
        });
    }
    let Some(thread) = decision.thread else {
        let options = ids();
        return Err(AnswerError::NoForm {
            decision: id,
            options,
        });
    };
    let handle = host.threads.handle(host, thread).await?;
    let _awake = touched(host, handle.box_id()).await;
    let answered = handle.answer_form(id, answer, by.to_owned()).await?;
    told(host, caller, &record, answered).await
}

/// What whoever answered is told.
async fn told(
    host: &Host,
    caller: &Caller,
    asked: &Record,
    answered: Result<(), AnswerFailure>,
) -> Result<(), AnswerError> {
    let id = asked.decision.decision;
    match answered {
        Ok(()) => Ok(()),
        // Between the look and the answer somebody was faster, or the agent died.
        Err(AnswerFailure::Over) => Err(over_now(find(host, caller, id).await?)),
        Err(AnswerFailure::Form(error)) => {
            let form = asked.decision.form.iter().flat_map(|form| &form.fields);
            Err(AnswerError::Fill {
                decision: id,
                error,
                fields: form.map(|field| field.name.clone()).collect(),
            })
        }
    }
}

fn over_now(record: Record) -> AnswerError {
    AnswerError::Over {
        decision: record.decision.decision,
        state: record.decision.state,
        who: record.who,
        note: record.note,
    }
}

fn is_open(record: &Record) -> Result<(), AnswerError> {
    if record.decision.state == DecisionState::Open {
        Ok(())
    } else {
        Err(over_now(record.clone()))
    }
}

/// An answer is on record whether or not the agent can hear it now.
async fn touched(host: &Host, id: BoxId) -> Option<Awake> {
    match watch::touch(host, id).await {
        Ok(awake) => awake,
        Err(error) => {
            tracing::warn!(%id, %error, "a box that was answered is not awake");
            None
        }
    }
}

/// The decision, if the caller may see it.
async fn find(host: &Host, caller: &Caller, id: DecisionId) -> Result<Record, AnswerError> {
    let record = host.store.read(move |tables| get(tables, id)).await?;
    record
        .filter(|record| caller.may(&record.owner))
        .ok_or(AnswerError::Unknown(id))
}

/// The id of the option meant, if the decision is open and has it.
fn open_option(record: &Record, option: &str) -> Result<String, AnswerError> {
    is_open(record)?;
    let decision = &record.decision;
    let id = decision.decision;
    match (choose(&decision.options, option), &decision.form) {
        (Choice::One(chosen), _) => Ok(chosen.id.clone()),
        (Choice::None, Some(form)) if decision.options.is_empty() => Err(AnswerError::IsForm {
            decision: id,
            form: form.clone(),
        }),
        (Choice::None, _) => Err(AnswerError::NoSuchOption {
            decision: id,
            option: option.to_owned(),
            options: decision
                .options
                .iter()
                .map(|option| option.id.clone())
                .collect(),
        }),
        (Choice::Several(options), _) => Err(AnswerError::Ambiguous {
            decision: id,
            word: option.to_owned(),
            options: options.into_iter().cloned().collect(),
        }),
    }
}

/// What a word means among options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice<'a> {
    One(&'a DecisionOption),
    /// Options of the kind the word is for; which is meant only their ids say.
    Several(Vec<&'a DecisionOption>),
    None,
}

/// The option meant by `word`: its id, a word for its kind, its label, or its number in the list, from 1.
pub fn choose<'a>(options: &'a [DecisionOption], word: &str) -> Choice<'a> {
    let kinds: &[OptionKind] = match word {
        "allow" | "yes" => &[OptionKind::AllowOnce, OptionKind::AllowAlways],
        "reject" | "no" => &[OptionKind::RejectOnce, OptionKind::RejectAlways],
        "allow_once" | "once" => &[OptionKind::AllowOnce],
        "allow_always" | "always" => &[OptionKind::AllowAlways],
        "reject_once" => &[OptionKind::RejectOnce],
        "reject_always" | "never" => &[OptionKind::RejectAlways],
        _ => &[],
    };
    if let Some(option) = options.iter().find(|option| option.id == word) {
        return Choice::One(option);
    }
    for kind in kinds {
        let of_kind: Vec<_> = options
            .iter()
            .filter(|option| option.kind == *kind)
            .collect();
        match of_kind.as_slice() {
            [] => {}
            [only] => return Choice::One(only),
            [..] => return Choice::Several(of_kind),
        }
    }
    let labelled = options.iter().find(|option| option.label == word);
    let numbered = || {
        let number: usize = word.parse().ok()?;
        options.get(number.checked_sub(1)?)
    };
    labelled.or_else(numbered).map_or(Choice::None, Choice::One)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(id: &str, label: &str, kind: OptionKind) -> DecisionOption {
        DecisionOption {
            id: id.into(),
            label: label.into(),
            kind,
        }
    }

    #[test]
    fn an_option_is_meant_by_its_id_then_its_kind_then_its_label() {
        let options = [
            option("reject", "No", OptionKind::RejectOnce),
            option("a2", "Always", OptionKind::AllowAlways),
            option("a1", "Yes", OptionKind::AllowOnce),
            option("allow", "Odd", OptionKind::Other),
        ];
        let chosen = |word: &str| match choose(&options, word) {
            Choice::One(option) => Some(option.id.as_str()),
            Choice::Several(_) | Choice::None => None,
        };
        assert_eq!(chosen("allow"), Some("allow"), "an id comes before a word");
        assert_eq!(chosen("yes"), Some("a1"), "once comes before always");
        assert_eq!(chosen("always"), Some("a2"));
        assert_eq!(chosen("no"), Some("reject"));
        assert_eq!(chosen("Odd"), Some("allow"));
        assert_eq!(chosen("never"), None, "no option of that kind");
        assert_eq!(chosen(""), None);
    }

    #[test]
    fn the_second_learns_who_was_first() {
        let error = AnswerError::Over {
            decision: DecisionId(7),
            state: DecisionState::Answered {
                option: "ok".into(),
            },
            who: Some("uid:1000".into()),
            note: None,
        };
        assert_eq!(
            error.to_string(),
            "decision 7 was answered by uid:1000: `ok`"
        );
        let lost = DecisionState::Lost {
            reason: "the agent ended with code 1".into(),
        };
        assert_eq!(
            over(&lost, None, None),
            "is lost: the agent ended with code 1"
        );
    }

    #[test]
    fn two_options_of_one_kind_are_not_chosen_between() {
        let options = [
            option("p1", "Yes, this", OptionKind::AllowOnce),
            option("p2", "Yes, all of it", OptionKind::AllowOnce),
            option("n", "No", OptionKind::RejectOnce),
        ];
        let both: Vec<_> = options[..2].iter().collect();
        assert_eq!(choose(&options, "allow"), Choice::Several(both));
        assert_eq!(choose(&options, "p2"), Choice::One(&options[1]));
        assert_eq!(choose(&options, "Yes, this"), Choice::One(&options[0]));
        assert_eq!(choose(&options, "no"), Choice::One(&options[2]));
        assert_eq!(choose(&options, "3"), Choice::One(&options[2]));
        assert_eq!(choose(&options, "0"), Choice::None);
        assert_eq!(choose(&options, "4"), Choice::None);
    }

    #[test]
    fn a_decision_nobody_answered_names_nobody() {
        let error = AnswerError::Over {
            decision: DecisionId(7),
            state: DecisionState::Answered {
                option: "no".into(),
            },
            who: None,
            note: Some("the hold time ran out".into()),
        };
        assert_eq!(
            error.to_string(),
            "decision 7 was answered: `no` – the hold time ran out"
        );
    }
}
