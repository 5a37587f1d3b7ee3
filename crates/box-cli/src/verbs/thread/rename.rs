//! `box thread rename`: gives a thread a title.

use super::super::{Ended, Print};
use super::{Named, act, name_of};
use crate::output::{Format, visible_line};
use box_api::control::ThreadAct;

/// Give a thread a title
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  box thread rename demo/2tq5 \"the parser\"\n\n\
    The agent's own titles are ignored from then on."
)]
pub(super) struct Args {
    #[arg(value_name = "NAME[/THREAD]", value_parser = Named::parse)]
    named: Named,
    /// 1 to 100 characters
    #[arg(value_name = "TITLE")]
    title: String,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: Args) -> Ended {
    let mut output = args.print.output();
    let title = args.title;
    let shown = act(&mut output, &args.named, ThreadAct::Rename { title })?;
    if output.format() == Format::Json {
        output.object(&shown)?;
    } else {
        let title = visible_line(&shown.info.title);
        output.note(&format!("thread {} is called `{title}`", name_of(&shown)));
    }
    Ok(0)
}
