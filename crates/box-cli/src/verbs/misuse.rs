//! What is said about a command line that makes no sense.

use super::Line;
use crate::complaint::{Complaint, WE_FAILED};
use crate::output::{Format, Output};
use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Prints help or complains; the value is the exit code.
pub(super) fn tell(error: &clap::Error) -> u8 {
    let mut output = Output::new(Format::Text);
    let typed: Vec<String> = std::env::args().skip(1).collect();
    let asked = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    );
    if asked {
        let help = error.render().to_string();
        return output
            .data(help.as_bytes())
            .map_or_else(|complaint| complaint.code(), |()| 0);
    }
    let complaint = complaint(error, &typed);
    if typed.is_empty() {
        output.note(Line::command().render_help().to_string().trim_end());
    } else {
        output.complain(&complaint);
    }
    let for_a_command = typed
        .first()
        .is_some_and(|verb| verb == "exec" || verb == "shell");
    if for_a_command {
        WE_FAILED
    } else {
        complaint.code()
    }
}

fn complaint(error: &clap::Error, typed: &[String]) -> Complaint {
    let what = spoken(&text_of(error, ContextKind::InvalidArg));
    let value = text_of(error, ContextKind::InvalidValue);
    let title = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            format!(
                "there is no verb `{}`",
                text_of(error, ContextKind::InvalidSubcommand)
            )
        }
        ErrorKind::UnknownArgument if what.starts_with("`-") => {
            format!("there is no option {what}")
        }
        ErrorKind::UnknownArgument => format!("{what} is one word too many"),
        ErrorKind::MissingRequiredArgument => format!("{what} is missing"),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            format!("`{}` needs a verb", path_of(typed))
        }
        ErrorKind::InvalidValue if value.is_empty() => format!("{what} needs a value"),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            format!("`{value}` does not work for {what}")
        }
        ErrorKind::ArgumentConflict => {
            let other = spoken(&text_of(error, ContextKind::PriorArg));
            format!("{what} and {other} exclude each other")
        }
        // Rare ones, in clap's own words.
        ErrorKind::NoEquals
        | ErrorKind::TooManyValues
        | ErrorKind::TooFewValues
        | ErrorKind::WrongNumberOfValues
        | ErrorKind::InvalidUtf8
        | ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::Io
        | ErrorKind::Format
        | _ => first_line(error),
    };
    let complaint = Complaint::usage("usage", title);
    let complaint = match (std::error::Error::source(error), possible(error)) {
        (Some(cause), _) => complaint.caused_by(cause),
        (None, Some(possible)) => complaint.caused_by(possible),
        (None, None) => complaint,
    };
    complaint.hinted(hint(error, typed))
}

/// What other programs call it.
const OF_OTHERS: &[(&str, &str)] = &[
    ("ls", "list"),
    ("delete", "rm"),
    ("remove", "rm"),
    ("destroy", "rm"),
    ("create", "new"),
    ("help", "box --help"),
    ("kill-all", "stop --all"),
];

fn hint(error: &clap::Error, typed: &[String]) -> String {
    let unknown = text_of(error, ContextKind::InvalidSubcommand);
    if let Some((_, verb)) = OF_OTHERS.iter().find(|(word, _)| *word == unknown) {
        return format!("did you mean `{verb}`?");
    }
    if let Some(verb) = nearest_verb(typed, &unknown) {
        return format!("did you mean `{verb}`?");
    }
    let suggested = [ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    let mut known = suggested.into_iter().map(|kind| text_of(error, kind));
    if let Some(suggestion) = known.find(|text| !text.is_empty()) {
        return format!("did you mean `{suggestion}`?");
    }
    let first = typed.first().map(String::as_str).unwrap_or_default();
    let verb = typed.iter().find(|word| !word.starts_with('-'));
    if let Some(verb) = verb.filter(|_| first.starts_with('-')) {
        return format!(
            "options come after the verb: `box {verb} {}`",
            option_name(first)
        );
    }
    let path = path_of(typed);
    match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage))
            if error.kind() == ErrorKind::MissingRequiredArgument =>
        {
            format!(
                "`{}`",
                usage.to_string().trim_start_matches("Usage:").trim()
            )
        }
        _ if path == "box" => "`box --help` lists the verbs".to_owned(),
        _ => format!("`{path} --help` shows examples"),
    }
}

/// The verb that was probably meant: at most two slips away, and the nearest. clap's own offers are
/// by common letters, so that `nwe` is taken for `answer`.
fn nearest_verb(typed: &[String], unknown: &str) -> Option<String> {
    const SLIPS_MAX: usize = 2;
    let mut command = Line::command();
    for word in typed {
        let Some(verb) = command.find_subcommand(word).cloned() else {
            break;
        };
        command = verb;
    }
    let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    let names = shown.flat_map(|verb| verb.get_all_aliases().chain([verb.get_name()]));
    let slips = names.map(|name| (strsim::damerau_levenshtein(unknown, name), name));
    slips
        .filter(|(slips, name)| *slips <= SLIPS_MAX && *slips < name.chars().count())
        .min()
        .map(|(_, name)| name.to_owned())
}

/// The verb as far as it was typed rightly: `box image prepare`.
fn path_of(typed: &[String]) -> String {
    let mut path = "box".to_owned();
    let mut command = Line::command();
    for word in typed {
        let Some(verb) = command.find_subcommand(word).cloned() else {
            break;
        };
        path = format!("{path} {}", verb.get_name());
        command = verb;
    }
    path
}

/// clap's name of an argument for a sentence: `<NAME>` is `NAME`, `--net <NET>` is `--net`. What was
/// given to an option is left out: it may be a secret.
fn spoken(name: &str) -> String {
    let word = name.split([' ', '=']).next().unwrap_or_default();
    format!(
        "`{}`",
        word.trim_start_matches(['<', '['])
            .trim_end_matches(['>', ']', '.'])
            .trim_end_matches('>')
    )
}

/// An option without what was given to it.
fn option_name(typed: &str) -> &str {
    typed.split('=').next().unwrap_or(typed)
}

fn text_of(error: &clap::Error, kind: ContextKind) -> String {
    match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join(" "),
        Some(ContextValue::StyledStr(text)) => text.to_string(),
        _ => String::new(),
    }
}

fn possible(error: &clap::Error) -> Option<String> {
    let kinds = [ContextKind::ValidValue, ContextKind::ValidSubcommand];
    kinds.into_iter().find_map(|kind| match error.get(kind) {
        Some(ContextValue::Strings(values)) if !values.is_empty() => {
            Some(format!("it can be: {}", values.join(", ")))
        }
        _ => None,
    })
}

fn first_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let line = text.lines().next().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}
