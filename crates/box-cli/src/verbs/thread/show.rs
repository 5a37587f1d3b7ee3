//! `box thread show`: all there is to know of a thread.

use super::super::list::thread_state;
use super::super::{Ended, Print};
use super::{Named, act, name_of, queue, tasks};
use crate::age;
use crate::output::{Format, table, visible_line};
use box_api::control::ThreadAct;
use box_api::thread::{ThreadAbilities, ThreadShown};

/// Show what a thread is, does and waits for
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  box thread show demo/2tq5")]
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
        output.object(&shown)?;
    } else {
        output.data(told(&shown, age::now_ms()).as_bytes())?;
    }
    Ok(0)
}

fn told(shown: &ThreadShown, now_ms: i64) -> String {
    let info = &shown.info;
    let mut rows = vec![
        ("thread", name_of(shown)),
        ("title", visible_line(&info.title)),
        ("agent", visible_line(&info.agent)),
        (
            "state",
            format!("{} {}", info.state.symbol(), thread_state(info.state)),
        ),
        (
            "begun",
            format!("{} ago", age::short(info.created_at_ms, now_ms)),
        ),
        (
            "changed",
            format!("{} ago", age::short(info.changed_at_ms, now_ms)),
        ),
        ("can", abilities(shown.can)),
    ];
    rows.extend(info.forked_from.map(|from| ("fork of", from.to_string())));
    rows.extend(shown.options.iter().map(|option| {
        let value = format!("{} = {}", option.option, option.value);
        ("option", visible_line(&value))
    }));
    rows.extend(shown.chosen.iter().map(|chosen| {
        let value = format!("{} = {}", chosen.option, chosen.value);
        ("chosen", visible_line(&value))
    }));
    rows.extend(
        shown
            .tasks
            .iter()
            .map(|task| ("background", tasks::line(task, now_ms))),
    );
    let waits = if shown.held { "held" } else { "waits" };
    rows.extend(shown.queue.iter().map(|one| (waits, queue::line(one))));
    let rows: Vec<Vec<String>> = rows
        .into_iter()
        .map(|(what, value)| vec![what.to_owned(), value])
        .collect();
    table::columns(&rows)
}

fn abilities(can: ThreadAbilities) -> String {
    let ThreadAbilities {
        load,
        fork,
        steer,
        stop_task,
        images,
    } = can;
    let words = [
        (load, "load"),
        (fork, "fork"),
        (steer, "steer"),
        (stop_task, "stop tasks"),
        (images, "see images"),
    ];
    let words: Vec<&str> = words
        .into_iter()
        .filter_map(|(can, word)| can.then_some(word))
        .collect();
    if words.is_empty() {
        return "nothing it told of".to_owned();
    }
    words.join(", ")
}
