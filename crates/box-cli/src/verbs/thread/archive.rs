//! `box thread archive` and `unarchive`: puts a thread away, and takes it out again.

use super::super::{Ended, Print};
use super::{Named, act, name_of};
use crate::output::Format;
use box_api::control::ThreadAct;

/// Put a thread away, or take it out again: it goes on, in no list
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  box thread archive demo/2tq5\n  \
    box thread unarchive demo/2tq5\n\n\
    `box threads --all` shows those put away. Nothing of it is lost, and it ends nothing.")]
pub(super) struct Args {
    #[arg(value_name = "NAME[/THREAD]", value_parser = Named::parse)]
    named: Named,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: &Args, what: ThreadAct) -> Ended {
    let mut output = args.print.output();
    let shown = act(&mut output, &args.named, what)?;
    if output.format() == Format::Json {
        output.object(&shown)?;
    } else {
        let done = if shown.info.archived {
            "put away"
        } else {
            "in the lists again"
        };
        output.note(&format!("thread {} is {done}", name_of(&shown)));
    }
    Ok(0)
}
