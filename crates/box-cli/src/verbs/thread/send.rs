//! `box thread send`: a prompt for a thread, without staying.

use super::super::{Ended, Print};
use super::{Named, act, name_of};
use crate::output::Format;
use box_api::control::ThreadAct;

/// Send a thread a prompt and leave
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  box thread send demo/2tq5 \"and then the docs\"\n\n\
    While a turn runs it waits, behind those that wait already: `box thread queue demo`."
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
    let shown = act(&mut output, &args.named, ThreadAct::Prompt { text })?;
    if output.format() == Format::Json {
        output.object(&shown)?;
        return Ok(0);
    }
    let name = name_of(&shown);
    output.note(&match shown.queue.len() {
        0 => format!("sent; `box attach {name}` looks on"),
        1 => "it waits until the turn is over".to_owned(),
        many => format!("it waits, as the last of {many}"),
    });
    Ok(0)
}
