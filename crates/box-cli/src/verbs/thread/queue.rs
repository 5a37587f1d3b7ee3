//! `box thread queue`: the prompts that wait for a turn to end.

use super::super::{Ended, Print};
use super::{Named, act};
use crate::output::{Format, table, visible_line};
use box_api::control::ThreadAct;
use box_api::thread::QueuedPrompt;

/// How much of a prompt a line shows.
const SHOWN_CHARS_MAX: usize = 100;

/// List, change or send the prompts that wait
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box thread queue demo\n  \
    box thread queue demo --edit 3 --text \"and the docs too\"\n  \
    box thread queue demo --delete 3\n  \
    box thread queue demo --now 3\n\n\
    After a turn that failed or was cancelled what waits is held: it is sent after your next prompt.")]
pub(super) struct Args {
    #[arg(value_name = "NAME[/THREAD]", value_parser = Named::parse)]
    named: Named,
    /// Give one another text, with --text
    #[arg(long, value_name = "NUMBER", requires = "text", conflicts_with_all = ["delete", "now"])]
    edit: Option<u64>,
    #[arg(long, value_name = "PROMPT", requires = "edit")]
    text: Option<String>,
    /// Delete one
    #[arg(long, value_name = "NUMBER", conflicts_with = "now")]
    delete: Option<u64>,
    /// Send one before all others: into the running turn
    #[arg(long, value_name = "NUMBER")]
    now: Option<u64>,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: Args) -> Ended {
    let mut output = args.print.output();
    let what = match (args.edit, args.delete, args.now) {
        (Some(queued), _, _) => ThreadAct::Edit {
            queued,
            text: args.text.unwrap_or_default(),
        },
        (None, Some(queued), _) => ThreadAct::Unqueue { queued },
        (None, None, Some(queued)) => ThreadAct::SendNow { queued },
        (None, None, None) => ThreadAct::Show,
    };
    let shown = act(&mut output, &args.named, what)?;
    if output.format() == Format::Json {
        output.object(&shown.queue)?;
        return Ok(0);
    }
    if shown.queue.is_empty() {
        output.note("nothing waits");
        return Ok(0);
    }
    let rows: Vec<Vec<String>> = shown
        .queue
        .iter()
        .map(|one| vec![one.queued.to_string(), head(one)])
        .collect();
    output.data(table::columns(&rows).as_bytes())?;
    if shown.held {
        output.note("held: they are sent after your next prompt, or with --now");
    }
    Ok(0)
}

/// One that waits, in one line.
pub(super) fn line(one: &QueuedPrompt) -> String {
    format!("{}: {}", one.queued, head(one))
}

fn head(one: &QueuedPrompt) -> String {
    let line = visible_line(&one.text);
    line.chars().take(SHOWN_CHARS_MAX).collect()
}
