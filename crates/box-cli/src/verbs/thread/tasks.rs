//! `box thread tasks`: what the agent runs in the background.

use super::super::{Ended, Print};
use super::{Named, act};
use crate::age;
use crate::output::{Format, table, visible_line};
use box_api::control::ThreadAct;
use box_api::thread::BackgroundTask;

/// List what goes on in the background, or end one task
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box thread tasks demo\n  \
    box thread tasks demo --stop b1x2c3\n\n\
    As the agent itself tells it. `box ps` shows the processes.")]
pub(super) struct Args {
    #[arg(value_name = "NAME[/THREAD]", value_parser = Named::parse)]
    named: Named,
    /// End this one
    #[arg(long, value_name = "TASK")]
    stop: Option<String>,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: Args) -> Ended {
    let mut output = args.print.output();
    let what = match args.stop {
        Some(task) => ThreadAct::StopTask { task },
        None => ThreadAct::Show,
    };
    let shown = act(&mut output, &args.named, what)?;
    if output.format() == Format::Json {
        output.object(&shown.tasks)?;
    } else if shown.tasks.is_empty() {
        output.note("nothing goes on in the background");
    } else {
        let now_ms = age::now_ms();
        let heading = ["TASK", "KIND", "AGE", "WHAT"];
        let mut rows = vec![heading.map(str::to_owned).to_vec()];
        rows.extend(shown.tasks.iter().map(|task| {
            vec![
                visible_line(&task.task),
                visible_line(&task.about),
                age::short(task.since_ms, now_ms),
                visible_line(&task.title),
            ]
        }));
        output.data(table::columns(&rows).as_bytes())?;
    }
    Ok(0)
}

/// One task in one line.
pub(super) fn line(task: &BackgroundTask, now_ms: i64) -> String {
    let since = age::short(task.since_ms, now_ms);
    visible_line(&format!(
        "{} ({}, {since}): {}",
        task.task, task.about, task.title
    ))
}
