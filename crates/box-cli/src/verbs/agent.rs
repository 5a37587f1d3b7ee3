//! `box agent`: the coding agents this machine can run.

use super::{Ended, Print};
use crate::client::unexpected;
use crate::host::{self, OtherBuild};
use crate::output::{Format, Output, table};
use box_api::control::{Outcome, Request};

/// List or install coding agents
#[derive(Debug, clap::Args)]
#[command(subcommand_value_name = "VERB", subcommand_help_heading = "Verbs")]
#[command(after_help = "Examples:\n  box agent list\n  box agent install claude")]
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
}

impl Args {
    pub(super) fn json(&self) -> bool {
        match &self.verb {
            Verb::List { print } | Verb::Install { print, .. } => print.json,
        }
    }
}

pub(super) fn run(args: Args) -> Ended {
    match args.verb {
        Verb::List { print } => list(&mut print.output()),
        Verb::Install { agent, print } => install(&mut print.output(), &agent),
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
