//! `box agent`: the coding agents this machine can run.

mod add;
mod login;
mod packs;

use super::credential::From;
use super::{Ended, Print};
use crate::client::unexpected;
use crate::host::{self, OtherBuild};
use crate::output::{Format, Output, table};
use box_api::BoxName;
use box_api::control::{Outcome, Request};
use std::path::PathBuf;

/// List, install, update, remove or add coding agents
#[derive(Debug, clap::Args)]
#[command(subcommand_value_name = "VERB", subcommand_help_heading = "Verbs")]
#[command(after_help = "Examples:\n  \
    box agent list\n  \
    box agent install claude\n  \
    box agent login claude\n  \
    box agent add my-agent.toml\n  \
    box agent update")]
pub(super) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// List the agents
    #[command(after_help = "Example:\n  box agent list")]
    List {
        #[command(flatten)]
        print: Print,
    },
    /// Install an agent, so that the first run does not wait for it
    #[command(after_help = "Example:\n  box agent install claude")]
    Install {
        #[arg(value_name = "AGENT")]
        agent: String,
        #[command(flatten)]
        print: Print,
    },
    /// Install the packs that belong to this build and remove older ones
    #[command(after_help = "Examples:\n  \
        box agent update\n  \
        box agent update claude\n\n\
        A box that runs goes on with the pack it was started with: while one runs, old packs stay.")]
    Update {
        /// Every agent that is installed, if not said
        #[arg(value_name = "AGENT")]
        agent: Option<String>,
        #[command(flatten)]
        print: Print,
    },
    /// Remove an agent's pack, or a profile you added
    #[command(
        visible_alias = "rm",
        after_help = "Examples:\n  \
        box agent remove gemini\n  \
        box agent remove my-agent --force\n\n\
        Refused while a box has a thread of it (exit code 3), unless --force."
    )]
    Remove {
        #[arg(value_name = "AGENT")]
        agent: String,
        /// Also while boxes have threads of it
        #[arg(long, short)]
        force: bool,
        #[command(flatten)]
        print: Print,
    },
    /// Log in to an agent: give its account here, or use its own login inside a box
    #[command(after_help = "Examples:\n  \
        box agent login claude\n  \
        box agent login openai --env OPENAI_API_KEY\n  \
        box agent login claude --inside demo\n\n\
        What is given here goes where `box credential add` puts it. Inside a box the agent's own \
        login runs;\nthe tokens stay with the way out and the box gets placeholders.")]
    Login {
        #[arg(value_name = "AGENT")]
        agent: String,
        /// A name, when you have several accounts
        #[arg(long, default_value = "default", conflicts_with = "inside")]
        name: String,
        /// Run the agent's own login in this box
        #[arg(
            long,
            value_name = "BOX",
            value_parser = BoxName::parse,
            conflicts_with_all = ["env", "file", "command", "every"]
        )]
        inside: Option<BoxName>,
        #[command(flatten)]
        from: From,
        #[command(flatten)]
        print: Print,
    },
    /// Add another agent that speaks ACP: a profile, or an entry of the ACP registry
    #[command(after_help = "Examples:\n  \
        box agent add my-agent.toml\n  \
        box agent add agent.json --force\n\n\
        Shows what it opens and asks. Without a terminal it needs --force (else exit code 2).\n\
        It is kept as `agents.d/<name>.toml` beside the settings.")]
    Add {
        /// A profile in TOML, or `agent.json` of the ACP registry
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Do not ask
        #[arg(long, short)]
        force: bool,
        #[command(flatten)]
        print: Print,
    },
}

impl Args {
    pub(super) fn json(&self) -> bool {
        match &self.verb {
            Verb::List { print }
            | Verb::Install { print, .. }
            | Verb::Update { print, .. }
            | Verb::Remove { print, .. }
            | Verb::Login { print, .. }
            | Verb::Add { print, .. } => print.json,
        }
    }
}

pub(super) fn run(args: Args) -> Ended {
    match args.verb {
        Verb::List { print } => list(&mut print.output()),
        Verb::Install { agent, print } => install(&mut print.output(), &agent),
        Verb::Update { agent, print } => packs::update(&mut print.output(), agent),
        Verb::Remove {
            agent,
            force,
            print,
        } => {
            let in_use = if force {
                packs::InUse::Goes
            } else {
                packs::InUse::Stays
            };
            packs::remove(&mut print.output(), &agent, in_use)
        }
        Verb::Login {
            agent,
            inside: Some(name),
            print,
            ..
        } => login::inside(&mut print.output(), &agent, name),
        Verb::Login {
            agent,
            name,
            from,
            print,
            inside: None,
        } => login::here(&mut print.output(), &agent, name, from),
        Verb::Add { file, force, print } => {
            let asks = if force {
                add::Asks::Nothing
            } else {
                add::Asks::First
            };
            add::run(&mut print.output(), &file, asks)
        }
    }
}

fn list(output: &mut Output) -> Ended {
    let client = host::reach(output, OtherBuild::Bear)?;
    let outcome = client.ask(output, &Request::AgentList)?;
    let Outcome::Agents { agents } = outcome else {
        return Err(unexpected(&outcome));
    };
    if output.format() == Format::Json {
        output.object(&agents)?;
        return Ok(0);
    }
    let mut rows = vec![["AGENT", "STATE", "TITLE"].map(str::to_owned).to_vec()];
    rows.extend(
        agents
            .into_iter()
            .map(|agent| vec![agent.agent, agent.state, agent.title]),
    );
    output.data(table::columns(&rows).as_bytes())?;
    Ok(0)
}

fn install(output: &mut Output, agent: &str) -> Ended {
    let request = Request::AgentPrepare {
        agent: agent.to_owned(),
    };
    let outcome = host::reach(output, OtherBuild::Bear)?.ask(output, &request)?;
    match (output.format(), outcome) {
        (Format::Json, outcome) => output.object(&outcome)?,
        (Format::Text, Outcome::Agents { agents }) => {
            for agent in agents {
                output.note(&format!("agent `{}`: {}", agent.agent, agent.state));
            }
        }
        (Format::Text, _) => output.note(&format!("agent `{agent}` is ready")),
    }
    Ok(0)
}
