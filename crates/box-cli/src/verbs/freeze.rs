//! `box freeze`: stops everything in a box until it is touched.

use super::{Ended, Print, target};
use crate::host::{self, OtherBuild};
use crate::output::Format;
use box_api::control::{Motion, Request, Target};

/// Stop everything in a box until it is touched or thawed
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  box freeze demo\n  box freeze all\n\n\
    Whatever is asked of it thaws it again: `exec`, `shell`, `run`, `attach`. To have it freeze by\n\
    itself: `box set demo freeze-after=30m`.")]
pub(super) struct Args {
    /// A box, or `all`
    #[arg(value_name = "NAME", value_parser = target::parse)]
    target: Target,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: Args) -> Ended {
    put(args.target, args.print, (Motion::Freeze, "is frozen"))
}

/// Moves a box and says what it is then.
pub(super) fn put(target: Target, print: Print, (motion, is): (Motion, &str)) -> Ended {
    let mut output = print.output();
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let spoken = target::spoken(&target);
    let outcome = client.ask(&mut output, &Request::Move { target, motion })?;
    match output.format() {
        Format::Json => output.object(&outcome)?,
        Format::Text => output.note(&format!("{spoken} {is}")),
    }
    Ok(0)
}
