//! `box start`: starts a box that is stopped, or all of them.

use super::{Ended, Print, list, target};
use crate::host::{self, OtherBuild};
use crate::output::Format;
use box_api::control::{BoxState, Outcome, Request, Target};

/// Start a stopped box
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  box start demo\n  box start all")]
pub(super) struct Args {
    /// A box, or `all`
    #[arg(value_name = "NAME", value_parser = target::parse)]
    target: Target,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: &Args) -> Ended {
    let mut output = args.print.output();
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let request = match &args.target {
        Target::All => Request::StartAll,
        Target::Box(name) => Request::Start { name: name.clone() },
    };
    let outcome = client.ask(&mut output, &request)?;
    let started = if let Outcome::Info(info) = &outcome {
        info.state
    } else {
        BoxState::Running
    };
    let state = list::state(started);
    match output.format() {
        Format::Json => output.object(&outcome)?,
        Format::Text => output.note(&format!("{} is {state}", target::spoken(&args.target))),
    }
    Ok(0)
}
