//! `box resume`: parked threads go on now.

use super::park::{Place, place};
use super::{Ended, Print};
use crate::client::unexpected;
use crate::host::{self, OtherBuild};
use crate::output::Format;
use box_api::control::{Outcome, Request};

/// Let parked threads go on now
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box resume demo\n  \
    box resume demo/2tq5k4xw7m3na6cz\n\n\
    What was interrupted is taken up again, then the prompts that wait.")]
pub(super) struct Args {
    /// A box, or one thread of it
    #[arg(value_name = "NAME[/THREAD]", value_parser = place)]
    place: Place,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: Args) -> Ended {
    let mut output = args.print.output();
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let Place { name, thread } = args.place;
    let outcome = client.ask(&mut output, &Request::Resume { name, thread })?;
    let Outcome::Parking { threads } = &outcome else {
        return Err(unexpected(&outcome));
    };
    match output.format() {
        Format::Json => output.object(&outcome)?,
        Format::Text => {
            for parked in threads {
                output.note(&format!("thread {} goes on", parked.thread));
            }
        }
    }
    Ok(0)
}
