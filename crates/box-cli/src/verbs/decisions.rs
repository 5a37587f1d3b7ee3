//! `box decisions`: what waits for a person, in every box.

use super::{Ended, Print};
use crate::client::unexpected;
use crate::host::{self, OtherBuild};
use crate::output::{Format, visible_line};
use crate::transcript::decision_text as text_of;
use box_api::DecisionId;
use box_api::control::{Outcome, Reply, Request};
use box_api::decision::{Field, FieldChoice, FieldKind, Form};
use box_api::network::Waiting;
use box_api::thread::{DecisionKind, DecisionState};

/// List what waits for your answer
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box decisions\n  \
    box decisions --follow\n  \
    box answer 12 once\n\n\
    While you follow, a connection to a host that is not listed waits up to 20 s for your answer.")]
pub(super) struct Args {
    /// Go on as things are asked
    #[arg(long, short)]
    follow: bool,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: &Args) -> Ended {
    let mut output = args.print.output();
    let mut client = host::reach(&mut output, OtherBuild::Bear)?;
    let request = Request::Decisions {
        follow: args.follow,
    };
    if !args.follow {
        let outcome = client.ask(&mut output, &request)?;
        let Outcome::Decisions { decisions } = outcome else {
            return Err(unexpected(&outcome));
        };
        if output.format() == Format::Json {
            output.object(&decisions)?;
        } else if decisions.is_empty() {
            output.note("nothing waits for you");
        } else {
            let all: String = decisions.iter().map(shown).collect();
            output.data(all.as_bytes())?;
        }
        return Ok(0);
    }
    client.request(&request)?;
    loop {
        match client.next(None)? {
            Reply::Decision(waiting) if output.format() == Format::Json => {
                output.object(&waiting)?;
            }
            Reply::Decision(waiting) if waiting.decision.state == DecisionState::Open => {
                output.data(shown(&waiting).as_bytes())?;
            }
            Reply::Decision(_) => {}
            Reply::Progress { text } => output.progress(&text),
            Reply::Problem(problem) => return Err(problem.into()),
            other @ (Reply::Note { .. }
            | Reply::Streams
            | Reply::Output { .. }
            | Reply::Thread { .. }
            | Reply::Update(_)
            | Reply::Net(_)
            | Reply::AnswerRefused { .. }
            | Reply::Done(_)) => return Err(unexpected(&other)),
        }
    }
}

/// The decision and the lines that answer it.
fn shown(waiting: &Waiting) -> String {
    let decision = &waiting.decision;
    let about = match decision.about {
        DecisionKind::Permission => "permission",
        DecisionKind::Question => "question",
        DecisionKind::Network => "network",
        DecisionKind::Push => "push",
        DecisionKind::Budget => "budget",
        DecisionKind::Plan => "plan",
    };
    let number = decision.decision;
    let head = format!(
        "{number}  {}  {about}: {}\n",
        waiting.name,
        visible_line(&decision.title)
    );
    let options = decision.options.iter().map(|option| {
        format!(
            "      box answer {number} {}    {}\n",
            word(&option.id),
            visible_line(&option.label)
        )
    });
    let text = text_of(decision)
        .into_iter()
        .map(|line| format!("{line}\n"));
    let form = decision.form.iter().filter(|_| decision.options.is_empty());
    let form = form.flat_map(|form| fields(number, form));
    std::iter::once(head)
        .chain(text)
        .chain(options)
        .chain(form)
        .collect()
}

/// The fields of a form, and the lines that answer it.
fn fields(number: DecisionId, form: &Form) -> Vec<String> {
    let told = |field: &Field| {
        let what = match &field.kind {
            FieldKind::One { choices } => any(choices, " | "),
            FieldKind::Many { choices, .. } => any(choices, ","),
            FieldKind::YesNo => "yes | no".to_owned(),
            FieldKind::Number { .. } => "a number".to_owned(),
            FieldKind::Text { .. } => "a text".to_owned(),
        };
        let may = if field.required {
            ""
        } else {
            " (may be left out)"
        };
        format!(
            "      {}: {what}{may}    {}\n",
            word(&field.name),
            visible_line(&field.title)
        )
    };
    let mut lines: Vec<String> = form.fields.iter().map(told).collect();
    let names = form
        .fields
        .iter()
        .filter(|field| field.instead_of.is_none());
    let names: Vec<String> = names
        .map(|field| format!("{}=…", word(&field.name)))
        .collect();
    lines.push(format!("      box answer {number} {}\n", names.join(" ")));
    lines.push(format!("      box answer {number} --decline\n"));
    lines
}

fn any(choices: &[FieldChoice], between: &str) -> String {
    let words: Vec<String> = choices.iter().map(|choice| word(&choice.value)).collect();
    words.join(between)
}

/// An id as a shell takes it.
fn word(id: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
    if !id.is_empty() && id.chars().all(plain) {
        id.to_owned()
    } else {
        format!("'{}'", visible_line(id).replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use box_api::thread::{Decision, DecisionOption, OptionKind};

    #[test]
    fn what_a_box_asks_writes_no_rows_of_its_own() {
        let option = DecisionOption {
            id: "a\n9  prod  network: it".to_owned(),
            label: "ok\n      box answer 7 all    keep blocked".to_owned(),
            kind: OptionKind::Other,
        };
        let waiting = Waiting {
            name: box_api::BoxName::parse("demo").unwrap(),
            decision: Decision {
                decision: DecisionId(3),
                box_id: box_api::BoxId::from_random([1; 10]),
                thread: None,
                about: DecisionKind::Permission,
                title: "one\ntwo".to_owned(),
                call: None,
                options: vec![option],
                form: None,
                text: None,
                state: DecisionState::Open,
            },
        };
        let shown = shown(&waiting);
        assert_eq!(shown.lines().count(), 2, "{shown}");
    }

    #[test]
    fn an_option_can_be_typed_as_it_is_shown() {
        assert_eq!(word("allow_once"), "allow_once");
        assert_eq!(word("yes; rm -rf ~"), "'yes; rm -rf ~'");
        assert_eq!(word("it's"), r"'it'\''s'");
        assert_eq!(word(""), "''");
    }
}
