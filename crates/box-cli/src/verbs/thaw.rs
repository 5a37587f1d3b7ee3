//! `box thaw`: lets a frozen box go on.

use super::{Ended, Print, freeze, target};
use box_api::control::{Motion, Target};

/// Let a frozen box go on
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  box thaw demo\n  box thaw all")]
pub(super) struct Args {
    /// A box, or `all`
    #[arg(value_name = "NAME", value_parser = target::parse)]
    target: Target,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: Args) -> Ended {
    freeze::put(args.target, args.print, (Motion::Thaw, "goes on"))
}
