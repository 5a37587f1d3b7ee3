//! `box thread cancel`: ends the running turn.

use super::super::{Ended, Print};
use super::{Named, act, name_of};
use crate::output::Format;
use box_api::control::ThreadAct;

/// Cancel the running turn; what waits is held
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  box thread cancel demo/2tq5")]
pub(super) struct Args {
    #[arg(value_name = "NAME[/THREAD]", value_parser = Named::parse)]
    named: Named,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: &Args) -> Ended {
    let mut output = args.print.output();
    let shown = act(&mut output, &args.named, ThreadAct::Cancel)?;
    if output.format() == Format::Json {
        output.object(&shown)?;
    } else {
        output.note(&format!("thread {}: cancelled", name_of(&shown)));
    }
    Ok(0)
}
