//! `box ask`: a question and its answer, for scripts.

use super::run::prompt::{self, Source};
use super::run::{self, Way, enclosed};
use super::{Ended, Print, machine};
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::json;
use crate::output::Output;
use crate::transcript::{Prompts, Thoughts};
use crate::turn::{Shown, View};
use box_api::BoxName;
use box_api::control::{BoxInfo, Outcome, Request, Run};

/// Who answers in a box where nobody has answered before.
const FIRST_AGENT: &str = "claude";

/// Ask a question, get the answer and nothing else
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box ask web \"which port does it listen on?\"\n  \
    box ask claude \"what is wrong with this?\" --attach shot.png --allow-all\n  \
    git diff | box ask web -\n  \
    box ask web \"are the tests green?\" --json\n\n\
    In a box that is there, by the agent of its newest thread, in a thread of its own; else in a new\n\
    box. --json prints one object: outcome, exit, answer, usage. Exit codes: as `box run`.")]
pub(super) struct Args {
    /// A box, or an agent for a new one
    #[arg(value_name = "BOX|AGENT")]
    whom: String,
    /// The question; `-` reads it from standard input
    #[arg(value_name = "QUESTION")]
    question: String,
    /// Another agent than that of the box's newest thread
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    #[command(flatten)]
    way: Way,
    #[command(flatten)]
    pub(super) print: Print,
    #[command(flatten)]
    machine: machine::Args,
}

pub(super) fn run(args: Args) -> Ended {
    let mut output = args.print.output();
    let ended = ask(&mut output, args);
    json::or_result(&mut output, ended)
}

fn ask(output: &mut Output, args: Args) -> Ended {
    let question = prompt::read(&args.whom, Source::of(Some(&args.question), None))?;
    let files = args.way.enclosed()?;
    let there = there(output, &args.whom)?;
    let (agent, name) = match there {
        Some(_) if args.machine.says_something() => {
            let title = format!("there is a box `{}` already", args.whom);
            return Err(
                Complaint::usage("box-made", title).hinted("leave out the options of the machine")
            );
        }
        Some(made) => {
            let newest = made.threads.first().map(|thread| thread.agent.clone());
            let agent = args.agent.or(newest);
            (
                agent.unwrap_or_else(|| FIRST_AGENT.to_owned()),
                Some(made.name),
            )
        }
        None => (args.agent.unwrap_or(args.whom), None),
    };
    let client = host::reach(output, OtherBuild::Bear)?;
    let machine = args.machine.with(client.welcome.defaults)?;
    let request = Run {
        agent,
        prompt: question,
        name,
        repo: None,
        allow_all: args.way.allow_all,
        image: machine.image,
        profile: machine.profile,
        net: machine.net,
        limits: machine.limits,
        settings: machine.settings,
        attachments: enclosed::announced(&files),
        chosen: args.way.chosen(),
    };
    let view = View {
        transcript: run::transcript(output, Thoughts::Folded, Prompts::Hidden),
        shown: Shown::Answer,
    };
    run::follow(output, client, (request, files), view)
}

/// The caller's box of that name.
fn there(output: &mut Output, whom: &str) -> Result<Option<BoxInfo>, Complaint> {
    let Ok(name) = BoxName::parse(whom) else {
        return Ok(None);
    };
    let outcome = host::reach(output, OtherBuild::Bear)?.ask(output, &Request::List)?;
    let Outcome::Boxes { boxes } = outcome else {
        return Err(unexpected(&outcome));
    };
    Ok(boxes.into_iter().find(|made| made.name == name))
}
