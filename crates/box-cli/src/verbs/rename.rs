//! `box rename`: gives a box another name.

use super::{Ended, Print};
use crate::client::unexpected;
use crate::host::{self, OtherBuild};
use crate::output::Format;
use box_api::BoxName;
use box_api::control::{BoxState, Outcome, Request};

/// Give a box another name
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  box rename demo shop\n\n\
    Works while it runs; inside, the host name follows with the next start.")]
pub(super) struct Args {
    #[arg(value_name = "NAME", value_parser = BoxName::parse)]
    name: BoxName,
    /// What it is called from now on
    #[arg(value_name = "NEW", value_parser = BoxName::parse)]
    new: BoxName,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: Args) -> Ended {
    let mut output = args.print.output();
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let request = Request::Rename {
        name: args.name.clone(),
        to: args.new,
    };
    let outcome = client.ask(&mut output, &request)?;
    let Outcome::Info(info) = &outcome else {
        return Err(unexpected(&outcome));
    };
    if output.format() == Format::Json {
        output.object(&outcome)?;
        return Ok(0);
    }
    output.note(&format!("box `{}` is `{}` now", args.name, info.name));
    if info.state == BoxState::Running {
        output.note("inside, the host name follows with the next start");
    }
    Ok(0)
}
