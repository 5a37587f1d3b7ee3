//! `box stop`: stops a box, or all of them. Files stay.

use super::{Ended, Print, target};
use crate::host::{self, OtherBuild};
use crate::output::Format;
use box_api::control::{Haste, Request, Target};

/// Stop a box; its files stay
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  box stop demo\n  box stop all --force")]
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
    let spoken = target::spoken(&args.target);
    let outcome = client.ask(
        &mut output,
        &Request::Stop {
            target: args.target,
            haste: if args.force {
                Haste::AtOnce
            } else {
                Haste::Graceful
            },
        },
    )?;
    match output.format() {
        Format::Json => output.object(&outcome)?,
        Format::Text => output.note(&format!("{spoken} is stopped")),
    }
    Ok(0)
}
