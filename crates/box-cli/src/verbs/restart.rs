//! `box restart`: stops a box and starts it, or all that run.

use super::{Ended, Print, target};
use crate::host::{self, OtherBuild};
use crate::output::Format;
use box_api::control::{Haste, Request, Target};

/// Stop a box and start it again
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  box restart demo\n  box restart all\n\n\
    `all` means every box that runs.")]
pub(super) struct Args {
    /// A box, or `all`
    #[arg(value_name = "NAME", value_parser = target::parse)]
    target: Target,
    /// Give what runs in it no time to end
    #[arg(long, short)]
    force: bool,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: Args) -> Ended {
    let mut output = args.print.output();
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let spoken = match &args.target {
        Target::All => "every box that ran".to_owned(),
        one @ Target::Box(_) => target::spoken(one),
    };
    let request = Request::Restart {
        target: args.target,
        haste: if args.force {
            Haste::AtOnce
        } else {
            Haste::Graceful
        },
    };
    let outcome = client.ask(&mut output, &request)?;
    match output.format() {
        Format::Json => output.object(&outcome)?,
        Format::Text => output.note(&format!("{spoken} is running")),
    }
    Ok(0)
}
