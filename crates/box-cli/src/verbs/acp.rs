//! `box acp`: a box as an agent for an editor.

use super::Ended;
use crate::acp::{self, Whom};
use crate::client::unexpected;
use crate::host::{self, OtherBuild};
use crate::output::{Format, Output};
use box_api::BoxName;
use box_api::control::{Outcome, Request};

/// Who works in a box where nobody has worked before.
const FIRST_AGENT: &str = "claude";

/// Let an editor use a box as its agent (Agent Client Protocol)
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box acp web\n  \
    box acp web --agent codex\n\n\
    Speaks ACP on standard input and output; an editor starts it. In Zed's settings.json:\n\
    \"agent_servers\": {\"web\": {\"command\": \"box\", \"args\": [\"acp\", \"web\"]}}\n\n\
    Its sessions are threads of the box: they go on when the editor is closed, `box attach` shows\n\
    them, and whoever answers a question first has answered it.")]
pub(super) struct Args {
    #[arg(value_name = "NAME", value_parser = BoxName::parse)]
    name: BoxName,
    /// Which agent; that of the box's newest thread if not said
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Let the agent do everything without asking; the box is the boundary
    #[arg(long)]
    allow_all: bool,
}

pub(super) fn run(args: Args) -> Ended {
    let mut output = Output::new(Format::Text);
    let info = Request::Info {
        name: args.name.clone(),
    };
    let outcome = host::reach(&mut output, OtherBuild::Bear)?.ask(&mut output, &info)?;
    let Outcome::Info(made) = outcome else {
        return Err(unexpected(&outcome));
    };
    let newest = made.threads.first().map(|thread| thread.agent.clone());
    let whom = Whom {
        name: made.name,
        agent: args
            .agent
            .or(newest)
            .unwrap_or_else(|| FIRST_AGENT.to_owned()),
        allow_all: args.allow_all,
    };
    acp::serve(&mut output, whom)?;
    Ok(0)
}
