//! `box thread options`: what the agent of a thread lets a person choose.

use super::super::{Ended, Print};
use super::{Named, act};
use crate::output::{Format, table, visible_line};
use box_api::control::ThreadAct;
use box_api::thread::ThreadShown;

/// List what can be chosen: mode, model, effort, whatever the agent offers
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  box thread options demo\n  \
    box thread set demo model=opus")]
pub(super) struct Args {
    #[arg(value_name = "NAME[/THREAD]", value_parser = Named::parse)]
    named: Named,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: &Args) -> Ended {
    let mut output = args.print.output();
    let shown = act(&mut output, &args.named, ThreadAct::Show)?;
    if output.format() == Format::Json {
        output.object(&shown.options)?;
    } else if shown.options.is_empty() {
        output.note("the agent has told none yet; it does when it is first asked something");
    } else {
        output.data(told(&shown).as_bytes())?;
    }
    Ok(0)
}

fn told(shown: &ThreadShown) -> String {
    let heading = ["OPTION", "NOW", "OR"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(shown.options.iter().map(|option| {
        let others = option.choices.iter().map(|choice| choice.value.as_str());
        let mut others: Vec<&str> = others.filter(|value| *value != option.value).collect();
        if option.choices.is_empty() {
            others.push(if option.value == "true" {
                "false"
            } else {
                "true"
            });
        }
        vec![
            visible_line(&option.option),
            visible_line(&option.value),
            visible_line(&others.join(", ")),
        ]
    }));
    table::columns(&rows)
}
