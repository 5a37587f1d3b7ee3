//! `box thread fork`: a copy of a thread that goes its own way.

use super::super::{Ended, Print};
use super::{Named, act, name_of};
use crate::output::Format;
use box_api::control::ThreadAct;

/// Begin a copy of a thread, with everything said so far
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  box thread fork demo/2tq5\n\n\
    It works on the same files, in plan mode until you choose another: `box thread set … mode=…`.\n\
    The one it is a copy of goes on, also in mid-turn.")]
pub(super) struct Args {
    #[arg(value_name = "NAME[/THREAD]", value_parser = Named::parse)]
    named: Named,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: &Args) -> Ended {
    let mut output = args.print.output();
    let shown = act(&mut output, &args.named, ThreadAct::Fork)?;
    if output.format() == Format::Json {
        output.object(&shown)?;
    } else {
        let name = name_of(&shown);
        output.data(format!("{name}\n").as_bytes())?;
        output.note(&format!("`box attach {name}` takes it up"));
    }
    Ok(0)
}
