//! `box thread set`: chooses options of a thread.

use super::super::{Ended, Print};
use super::{Named, act};
use crate::output::{Format, visible_line};
use box_api::control::ThreadAct;
use box_api::thread::ChosenOption;

/// Choose mode, model, effort or whatever the agent offers
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box thread set demo/2tq5 mode=plan\n  \
    box thread set demo model=opus effort=high\n\n\
    Kept in the thread: it holds at once where the agent allows, and again whenever it starts.\n\
    `box thread options` lists what there is.")]
pub(super) struct Args {
    #[arg(value_name = "NAME[/THREAD]", value_parser = Named::parse)]
    named: Named,
    #[arg(value_name = "OPTION=VALUE", required = true, value_parser = chosen)]
    chosen: Vec<ChosenOption>,
    #[command(flatten)]
    pub(super) print: Print,
}

/// # Errors
/// That it is no `option=value`.
pub(super) fn chosen(text: &str) -> Result<ChosenOption, String> {
    match text.split_once('=') {
        Some((option, value)) if !option.is_empty() && !value.is_empty() => Ok(ChosenOption {
            option: option.to_owned(),
            value: value.to_owned(),
        }),
        Some(_) | None => Err("write it as `option=value`, such as `model=opus`".to_owned()),
    }
}

pub(super) fn run(args: Args) -> Ended {
    let mut output = args.print.output();
    let chosen = args.chosen;
    let shown = act(&mut output, &args.named, ThreadAct::Set { chosen })?;
    if output.format() == Format::Json {
        output.object(&shown)?;
        return Ok(0);
    }
    for chosen in &shown.chosen {
        let told = format!("{}={}", chosen.option, chosen.value);
        output.note(&format!("{}: the agent is told", visible_line(&told)));
    }
    Ok(0)
}
