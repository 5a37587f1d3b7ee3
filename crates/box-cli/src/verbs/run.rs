//! `box run`: one prompt to an agent in a box, followed to its end.

pub(super) mod enclosed;
pub(super) mod prompt;
mod side_by_side;

use super::{Ended, Print, furnish, machine};
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::here::Here;
use crate::host::{self, OtherBuild};
use crate::json;
use crate::output::{Format, Output, is_dumb};
use crate::transcript::{Look, Prompts, Thoughts, Transcript};
use crate::turn::conversation::Conversation;
use crate::turn::moves::Answers;
use crate::turn::{self, Shown, View};
use box_api::control::{Marks, NewBox, Outcome, Request, Run};
use box_api::thread::ChosenOption;
use box_api::{BoxName, Owner};
use enclosed::Enclosed;
use prompt::Source;
use rustix::termios::tcgetwinsize;
use std::io::{IsTerminal as _, stdout};
use std::path::PathBuf;

/// What the scripted agent is asked when nobody says anything.
pub(super) const DEMO_PROMPT: &str = "Show me what a box can do.";

/// Give an agent something to do
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box run demo\n  \
    box run claude \"fix the failing test\" --repo https://github.com/me/project\n  \
    box run claude \"tidy up\" --here\n  \
    box run claude --file task.md --name project --allow-all\n  \
    box run claude \"why does it look like this?\" --box project --attach shot.png\n  \
    git diff | box run claude - --name review\n  \
    box run --agents claude,codex \"make it faster\" --here\n\n\
    Ctrl-C cancels the turn, a second one leaves without waiting (`box attach` takes it up).\n\
    With --json: one object a line, each with an `event`; the last one is `result`.\n\
    Exit codes: 0 done, 1 failed, 2 asked wrong, 3 refused, 4 cancelled, 5 parked at a usage limit,\n\
    6 waits for a person, 7 stopped short, 125 engine.")]
pub(super) struct Args {
    /// `claude`, `demo`, … (`box agent list`)
    #[arg(value_name = "AGENT", required_unless_present = "agents")]
    agent: Option<String>,
    /// What it is to do; `-` reads it from standard input
    #[arg(value_name = "PROMPT", conflicts_with = "file")]
    prompt: Option<String>,
    /// The same prompt to several agents, each in a new box of its own, side by side
    #[arg(long, value_name = "AGENT,…", value_delimiter = ',', conflicts_with_all = ["name", "within"])]
    agents: Vec<String>,
    /// Read the prompt from a file
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
    /// The box to work in; made if it is not there. If not said: a new one
    #[arg(long, value_name = "NAME", value_parser = BoxName::parse)]
    name: Option<BoxName>,
    /// The box to work in, which must be there
    #[arg(long = "box", value_name = "NAME", value_parser = BoxName::parse, conflicts_with = "name")]
    within: Option<BoxName>,
    /// A git repository to clone into the workspace first
    #[arg(long, value_name = "URL", conflicts_with = "here")]
    repo: Option<String>,
    #[command(flatten)]
    pub(super) way: Way,
    /// Show all of its reasoning
    #[arg(long)]
    thoughts: bool,
    /// Print only what it says last
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    pub(super) print: Print,
    #[command(flatten)]
    furnish: furnish::Args,
    #[command(flatten)]
    machine: machine::Args,
}

/// How the agent works, and with what; `ask` has it too.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(super) struct Way {
    /// A file for the agent, up to 25 MiB; may be given again
    #[arg(long, value_name = "PATH")]
    attach: Vec<PathBuf>,
    /// One of the agent's modes, such as `plan`
    #[arg(long, value_name = "MODE")]
    mode: Option<String>,
    /// One of the agent's models
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Let the agent do everything without asking; the box is the boundary
    #[arg(long)]
    pub(super) allow_all: bool,
}

impl Way {
    /// What of its offer the agent is to use. Both words are categories of the protocol, which
    /// agents give the option that is meant.
    pub(super) fn chosen(&self) -> Vec<ChosenOption> {
        let said = [("model", &self.model), ("mode", &self.mode)];
        said.into_iter()
            .filter_map(|(option, value)| {
                Some(ChosenOption {
                    option: option.to_owned(),
                    value: value.clone()?,
                })
            })
            .collect()
    }

    /// # Errors
    /// That a file cannot be read, or is none.
    pub(super) fn enclosed(&self) -> Result<Vec<Enclosed>, Complaint> {
        enclosed::open(&self.attach)
    }
}

pub(super) fn run(args: Args) -> Ended {
    let mut output = args.print.output();
    let ended = if args.agents.is_empty() {
        one(&mut output, args)
    } else {
        side_by_side::run(&mut output, args)
    };
    json::or_result(&mut output, ended)
}

fn one(output: &mut Output, args: Args) -> Ended {
    let agent = args.agent.clone().unwrap_or_default();
    let prompt = prompt::read(
        &agent,
        Source::of(args.prompt.as_deref(), args.file.as_deref()),
    )?;
    let files = args.way.enclosed()?;
    let here = args.furnish.prepare(output)?;
    let name = args.within.clone().or_else(|| args.name.clone());
    if let Some(name) = &name
        && (here.is_some() || args.machine.says_something())
    {
        refuse_made(output, name)?;
    }
    if let Some(name) = args.within.clone() {
        host::reach(output, OtherBuild::Bear)?.ask(output, &Request::Info { name })?;
    }
    let client = host::reach(output, OtherBuild::Bear)?;
    let machine = args.machine.with(client.welcome.defaults)?;
    let name = match &here {
        Some(here) => Some(make(output, name, &machine, here)?),
        None => name,
    };
    let request = Run {
        agent,
        prompt,
        name,
        repo: args.repo,
        allow_all: args.way.allow_all,
        image: machine.image,
        profile: machine.profile,
        net: machine.net,
        limits: machine.limits,
        settings: machine.settings,
        attachments: enclosed::announced(&files),
        chosen: args.way.chosen(),
    };
    let thoughts = if args.thoughts {
        Thoughts::Full
    } else {
        Thoughts::Folded
    };
    let view = View {
        transcript: transcript(output, thoughts, Prompts::Hidden),
        shown: if args.quiet {
            Shown::Answer
        } else {
            Shown::Everything
        },
    };
    follow(output, client, (request, files), view)
}

/// A box with what is here in it, before any agent.
fn make(
    output: &mut Output,
    name: Option<BoxName>,
    machine: &machine::Machine,
    here: &Here,
) -> Result<BoxName, Complaint> {
    let new = NewBox {
        name: name.unwrap_or_else(|| furnish::made_up_name(here)),
        title: None,
        image: machine.image.clone(),
        profile: machine.profile,
        net: machine.net,
        limits: machine.limits,
        allow: Vec::new(),
        start: true,
        settings: machine.settings.clone(),
        setup: None,
        marks: Marks::default(),
    };
    output.progress(&format!("making box `{}`", new.name));
    furnish::make(output, new, here)
}

/// A box that is there is what it is: options that describe another must not be lost in silence.
fn refuse_made(output: &mut Output, name: &BoxName) -> Result<(), Complaint> {
    let client = host::reach(output, OtherBuild::Bear)?;
    let boxes = client.ask(output, &Request::List)?;
    let Outcome::Boxes { boxes } = boxes else {
        return Err(unexpected(&boxes));
    };
    if boxes.iter().all(|made| made.name != *name) {
        return Ok(());
    }
    let title = format!("there is a box `{name}` already, and what it is like was said then");
    Err(Complaint::usage("box-made", title).hinted(format!(
        "leave out the options of the machine, or remove it first: `box rm {name}`"
    )))
}

/// Asks for a turn and shows it to its end.
pub(super) fn follow(
    output: &mut Output,
    mut client: crate::client::Client,
    (request, files): (Run, Vec<Enclosed>),
    view: View,
) -> Ended {
    let answers = if request.allow_all {
        Answers::AllowAll
    } else {
        turn::answers(output.format())
    };
    client.request(&Request::Run(request))?;
    for file in files {
        file.send(&mut client)?;
    }
    turn::drive(output, client, Conversation::run(answers), view)
}

/// A transcript that suits where it is shown.
pub(super) fn transcript(output: &Output, thoughts: Thoughts, prompts: Prompts) -> Transcript {
    let terminal = stdout().is_terminal() && !is_dumb() && output.format() == Format::Text;
    let columns = tcgetwinsize(stdout())
        .ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|columns| *columns > 0);
    Transcript::new(Look {
        owner: Owner::Uid(rustix::process::geteuid().as_raw()).to_string(),
        paint: output.paint(),
        columns: columns.filter(|_| terminal),
        thoughts,
        prompts,
    })
}
