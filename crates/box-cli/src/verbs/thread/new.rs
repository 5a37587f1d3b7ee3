//! `box thread new`: another thread in a box.

use super::super::{Ended, Print};
use super::Named;
use super::{act, name_of, set};
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::{Format, Output};
use box_api::control::{Outcome, Request, ThreadAct, ThreadOpen, ThreadsAsk};
use box_api::thread::ChosenOption;
use box_api::{BoxName, ThreadId};

/// Whose thread it is in a box where nobody has worked before.
const FIRST_AGENT: &str = "claude";

/// Begin another thread in a box
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box thread new demo \"write the tests\"\n  \
    box thread new demo --agent codex --title tests -o model=gpt-5\n\n\
    Threads of a box work side by side on the same files. Without a prompt it waits for one:\n\
    `box attach demo/…`.")]
pub(super) struct Args {
    #[arg(value_name = "NAME", value_parser = BoxName::parse)]
    name: BoxName,
    /// What it is to do; it works on while you do something else
    #[arg(value_name = "PROMPT")]
    prompt: Option<String>,
    /// Another agent than that of the box's newest thread
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Let it work without asking
    #[arg(long)]
    allow_all: bool,
    /// What it is called; its agent's own title if not said
    #[arg(long, value_name = "TITLE")]
    title: Option<String>,
    /// An option of the agent, such as `model=opus`; may be given several times
    #[arg(long, short, value_name = "OPTION=VALUE", value_parser = set::chosen)]
    option: Vec<ChosenOption>,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: Args) -> Ended {
    let mut output = args.print.output();
    let agent = match args.agent {
        Some(agent) => agent,
        None => newest_agent(&mut output, &args.name)?,
    };
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let open = Request::ThreadOpen(ThreadOpen {
        name: args.name.clone(),
        agent,
        allow_all: args.allow_all,
    });
    let outcome = client.ask(&mut output, &open)?;
    let Outcome::Thread { thread } = outcome else {
        return Err(unexpected(&outcome));
    };
    let named = named(&args.name, thread)?;
    if !args.option.is_empty() {
        let chosen = args.option;
        act(&mut output, &named, ThreadAct::Set { chosen })?;
    }
    if let Some(title) = args.title {
        act(&mut output, &named, ThreadAct::Rename { title })?;
    }
    let last = match args.prompt {
        Some(text) => ThreadAct::Prompt { text },
        None => ThreadAct::Show,
    };
    let shown = act(&mut output, &named, last)?;
    if output.format() == Format::Json {
        output.object(&shown)?;
    } else {
        let name = name_of(&shown);
        output.data(format!("{name}\n").as_bytes())?;
        output.note(&format!("`box attach {name}` takes it up"));
    }
    Ok(0)
}

fn named(name: &BoxName, thread: ThreadId) -> Result<Named, Complaint> {
    Named::parse(&format!("{name}/{thread}")).map_err(|why| Complaint::engine("host-garbled", why))
}

fn newest_agent(output: &mut Output, name: &BoxName) -> Result<String, Complaint> {
    let client = host::reach(output, OtherBuild::Bear)?;
    let ask = Request::Threads(ThreadsAsk {
        name: Some(name.clone()),
        archived: true,
    });
    let outcome = client.ask(output, &ask)?;
    let Outcome::Threads { threads } = outcome else {
        return Err(unexpected(&outcome));
    };
    let newest = threads.into_iter().next().map(|thread| thread.info.agent);
    Ok(newest.unwrap_or_else(|| FIRST_AGENT.to_owned()))
}
