//! `box run`: one prompt to an agent in a box, followed to its end.

use super::{Ended, Print, furnish, machine};
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::here::Here;
use crate::host::{self, OtherBuild};
use crate::output::{Format, Output, is_dumb};
use crate::transcript::{Look, Prompts, Thoughts, Transcript};
use crate::turn;
use crate::turn::conversation::Conversation;
use crate::turn::moves::Answers;
use box_api::control::{Marks, NewBox, Outcome, Request, Run};
use box_api::{BoxName, Owner};
use rustix::termios::tcgetwinsize;
use std::io::{IsTerminal as _, Read, stdin, stdout};
use std::path::{Path, PathBuf};

/// Longer than any prompt, shorter than a frame.
const PROMPT_BYTES_MAX: u64 = 4 << 20;
/// What the scripted agent is asked when nobody says anything.
pub(super) const DEMO_PROMPT: &str = "Show me what a box can do.";

/// Give an agent something to do
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box run demo\n  \
    box run claude \"fix the failing test\" --repo https://github.com/me/project\n  \
    box run claude \"tidy up\" --here\n  \
    box run claude --file task.md --name project --allow-all\n  \
    git diff | box run claude - --name review\n\n\
    Ctrl-C cancels the turn, a second one leaves without waiting (`box attach` takes it up).\n\
    Exit codes: 0 done, 1 failed, 2 asked wrong, 3 refused, 4 cancelled, 5 parked at a usage limit,\n\
    6 waits for a person, 7 stopped short, 125 engine.")]
pub(super) struct Args {
    /// `claude`, `demo`, … (`box agent list`)
    #[arg(value_name = "AGENT")]
    agent: String,
    /// What it is to do; `-` reads it from standard input
    #[arg(value_name = "PROMPT", conflicts_with = "file")]
    prompt: Option<String>,
    /// Read the prompt from a file
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
    /// The box to work in; made if it is not there. If not said: a new one
    #[arg(long, value_name = "NAME", value_parser = BoxName::parse)]
    name: Option<BoxName>,
    /// A git repository to clone into the workspace first
    #[arg(long, value_name = "URL", conflicts_with = "here")]
    repo: Option<String>,
    /// Let the agent do everything without asking; the box is the boundary
    #[arg(long)]
    allow_all: bool,
    /// Show all of its reasoning
    #[arg(long)]
    thoughts: bool,
    #[command(flatten)]
    pub(super) print: Print,
    #[command(flatten)]
    furnish: furnish::Args,
    #[command(flatten)]
    machine: machine::Args,
}

pub(super) fn run(args: Args) -> Ended {
    let mut output = args.print.output();
    let prompt = prompt(&args)?;
    let here = args.furnish.prepare(&mut output)?;
    if let Some(name) = &args.name
        && (here.is_some() || args.machine.says_something())
    {
        refuse_made(&mut output, name)?;
    }
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let machine = args.machine.with(client.welcome.defaults)?;
    let name = match &here {
        Some(here) => Some(make(&mut output, args.name, &machine, here)?),
        None => args.name,
    };
    let request = Run {
        agent: args.agent,
        prompt,
        name,
        repo: args.repo,
        allow_all: args.allow_all,
        image: machine.image,
        profile: machine.profile,
        net: machine.net,
        limits: machine.limits,
        settings: machine.settings,
    };
    let thoughts = if args.thoughts {
        Thoughts::Full
    } else {
        Thoughts::Folded
    };
    let transcript = transcript(&output, thoughts, Prompts::Hidden);
    follow(&mut output, client, request, transcript)
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
    request: Run,
    transcript: Transcript,
) -> Ended {
    let answers = if request.allow_all {
        Answers::AllowAll
    } else {
        turn::answers(output.format())
    };
    client.request(&Request::Run(request))?;
    turn::drive(output, client, Conversation::run(answers), transcript)
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

fn prompt(args: &Args) -> Result<String, Complaint> {
    let text = match (&args.prompt, &args.file) {
        (_, Some(path)) => read_file(path)?,
        (Some(text), None) if text == "-" => read_prompt(stdin(), "standard input")?,
        (Some(text), None) => text.clone(),
        (None, None) if args.agent == "demo" => DEMO_PROMPT.to_owned(),
        (None, None) => String::new(),
    };
    if text.trim().is_empty() {
        return Err(Complaint::usage(
            "no-prompt",
            format!("`{}` was not told what to do", args.agent),
        )
        .hinted(format!(
            "`box run {} \"<what to do>\"`, or `-` for standard input",
            args.agent
        )));
    }
    Ok(text)
}

fn read_file(path: &Path) -> Result<String, Complaint> {
    let file = std::fs::File::open(path).map_err(|error| {
        Complaint::usage(
            "no-prompt",
            format!("could not read the prompt from `{}`", path.display()),
        )
        .caused_by(error)
    })?;
    read_prompt(file, &path.display().to_string())
}

fn read_prompt(from: impl Read, name: &str) -> Result<String, Complaint> {
    let mut text = String::new();
    let read = from.take(PROMPT_BYTES_MAX + 1).read_to_string(&mut text);
    read.map_err(|error| {
        Complaint::usage(
            "no-prompt",
            format!("could not read the prompt from `{name}`"),
        )
        .caused_by(error)
    })?;
    if text.len() as u64 > PROMPT_BYTES_MAX {
        let title = format!(
            "the prompt in `{name}` has more than {} MiB",
            PROMPT_BYTES_MAX >> 20
        );
        return Err(Complaint::usage("no-prompt", title)
            .hinted("put long texts into the workspace and name the file"));
    }
    Ok(text)
}
