//! `box start`: starts a box that is stopped.

use super::{Ended, Print, list};
use crate::host::{self, OtherBuild};
use crate::output::Format;
use box_api::BoxName;
use box_api::control::{BoxState, Outcome, Request};

/// Start a stopped box
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  box start demo")]
pub(super) struct Args {
    #[arg(value_name = "NAME", value_parser = BoxName::parse)]
    name: BoxName,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: &Args) -> Ended {
    let mut output = args.print.output();
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let outcome = client.ask(
        &mut output,
        &Request::Start {
            name: args.name.clone(),
        },
    )?;
    let started = if let Outcome::Info(info) = &outcome {
        info.state
    } else {
        BoxState::Running
    };
    let state = list::state(started);
    match output.format() {
        Format::Json => output.object(&outcome)?,
        Format::Text => output.note(&format!("box `{}` is {state}", args.name)),
    }
    Ok(0)
}
