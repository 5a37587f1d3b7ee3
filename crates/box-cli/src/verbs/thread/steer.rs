//! `box thread steer`: a prompt for the turn that runs.

use super::super::{Ended, Print};
use super::{Named, act};
use crate::output::Format;
use box_api::control::ThreadAct;

/// Say something into the running turn
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  box thread steer demo \"leave the tests alone\"\n\n\
    An agent that cannot take it into its turn has the turn cancelled and gets it next."
)]
pub(super) struct Args {
    #[arg(value_name = "NAME[/THREAD]", value_parser = Named::parse)]
    named: Named,
    #[arg(value_name = "PROMPT")]
    prompt: String,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: Args) -> Ended {
    let mut output = args.print.output();
    let text = args.prompt;
    let shown = act(&mut output, &args.named, ThreadAct::Steer { text })?;
    if output.format() == Format::Json {
        output.object(&shown)?;
    } else {
        output.note(if shown.can.steer {
            "said into the turn"
        } else {
            "the turn makes room for it"
        });
    }
    Ok(0)
}
