//! `box agent add`: a profile is read by the host, what it opens is shown, and somebody says yes.

use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::{Format, Output, visible_line};
use crate::terminal;
use crate::verbs::Ended;
use crate::verbs::confirm::{self, Answer, Question};
use box_api::control::{AgentAdd, AgentAsk, AgentOpens, Outcome, Request};
use std::io::Read as _;
use std::path::Path;

/// The host takes less.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Whether somebody is to say yes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asks {
    First,
    Nothing,
}

pub(super) fn run(output: &mut Output, file: &Path, asks: Asks) -> Ended {
    let text = read(file)?;
    let mut add = AgentAdd {
        file: file.display().to_string(),
        text,
        agreed: false,
    };
    let opens = ask(output, &add)?;
    if asks == Asks::First && !agreed(output, &opens)? {
        output.note("nothing was added");
        return Ok(1);
    }
    add.agreed = true;
    let opens = ask(output, &add)?;
    let agent = &opens.agent;
    match output.format() {
        Format::Json => output.object(&opens)?,
        Format::Text => {
            if asks == Asks::Nothing {
                tell(output, &opens);
            }
            output.note(&format!("agent `{agent}` is added"));
            output.note(&format!("hint: `box run {agent} \"hello\"`"));
        }
    }
    Ok(0)
}

fn read(file: &Path) -> Result<String, Complaint> {
    let mut text = String::new();
    let opened = std::fs::File::open(file);
    let read = opened.and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text));
    read.map(|_| text).map_err(|error| {
        let title = format!("could not read `{}`", file.display());
        Complaint::usage("no-file", title).caused_by(error)
    })
}

fn ask(output: &mut Output, add: &AgentAdd) -> Result<AgentOpens, Complaint> {
    let client = host::reach(output, OtherBuild::Bear)?;
    let outcome = client.ask(output, &Request::Agent(AgentAsk::Add(add.clone())))?;
    let Outcome::AgentOpens(opens) = outcome else {
        return Err(unexpected(&outcome));
    };
    Ok(opens)
}

/// What is open once it is added.
fn tell(output: &mut Output, opens: &AgentOpens) {
    note(output, &format!("agent `{}`: {}", opens.agent, opens.title));
    let command: Vec<String> = opens
        .command
        .iter()
        .map(|word| format!("`{word}`"))
        .collect();
    note(output, &format!("  runs in a box: {}", command.join(" ")));
    for (what, names) in [
        (
            "hosts that boxes with the preset `balanced` may reach",
            &opens.hosts,
        ),
        ("variables of its process", &opens.variables),
        ("files in the home of its boxes", &opens.files),
    ] {
        if !names.is_empty() {
            note(output, &format!("  {what}: {}", names.join(", ")));
        }
    }
    match &opens.credential {
        Some(its) => {
            let hosts = its.hosts.join(", ");
            note(
                output,
                &format!("  credential `{}`, sent to: {hosts}", its.kind),
            );
            let variables = its.variables.join(", ");
            note(
                output,
                &format!("  placeholder of it in the box: {variables}"),
            );
        }
        None => note(output, "  no credential"),
    }
    if !opens.mode.is_empty() {
        note(
            output,
            &format!("  threads begin in its mode `{}`", opens.mode),
        );
    }
    if opens.replaces {
        note(output, "  it takes the place of the profile of that name");
    }
}

/// A line of what a file says, in which nothing steers the terminal.
fn note(output: &mut Output, line: &str) {
    output.note(&visible_line(line));
}

fn agreed(output: &mut Output, opens: &AgentOpens) -> Result<bool, Complaint> {
    if !terminal::can_ask() || output.format() == Format::Json {
        return Err(Complaint::usage("needs-yes", "adding an agent needs a yes")
            .caused_by("there is no terminal to ask at")
            .hinted("`box agent add <file> --force` shows what it opens and does not ask"));
    }
    tell(output, opens);
    let text = format!("add agent `{}`", opens.agent);
    let question = Question {
        text: &text,
        default: Answer::No,
    };
    Ok(confirm::ask(output, &question)? == Answer::Yes)
}
