//! `box thread export`: a thread as a document.

mod markdown;

use super::super::Ended;
use super::{Named, act};
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::{Format, Output};
use box_api::control::{Attach, Reply, Request, ThreadAct};
use box_api::thread::{Item, JournalRow, ThreadShown, ThreadUpdate};
use clap::ValueEnum;
use serde::Serialize;

/// Print a whole thread as Markdown or JSON
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box thread export demo > demo.md\n  \
    box thread export demo/2tq5 --format json | jq '.rows[].kind'\n\n\
    JSON has every row of the journal as it is kept, also those of kinds this build does not know.")]
pub(super) struct Args {
    #[arg(value_name = "NAME[/THREAD]", value_parser = Named::parse)]
    named: Named,
    #[arg(long, value_enum, default_value_t = As::Md)]
    format: As,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum As {
    Md,
    Json,
}

/// The document, as programs read it.
#[derive(Debug, Serialize)]
struct Document<'a> {
    thread: &'a ThreadShown,
    rows: &'a [JournalRow],
}

pub(super) fn run(args: &Args) -> Ended {
    let format = match args.format {
        As::Md => Format::Text,
        As::Json => Format::Json,
    };
    let mut output = Output::new(format);
    let shown = act(&mut output, &args.named, ThreadAct::Show)?;
    let rows = read(&mut output, &shown)?;
    match args.format {
        As::Json => output.object(&Document {
            thread: &shown,
            rows: &rows,
        })?,
        As::Md => output.data(markdown::document(&shown, &rows).as_bytes())?,
    }
    Ok(0)
}

/// The journal as it stands now.
fn read(output: &mut Output, shown: &ThreadShown) -> Result<Vec<JournalRow>, Complaint> {
    let mut client = host::reach(output, OtherBuild::Bear)?;
    client.request(&Request::Attach(Attach {
        name: shown.name.clone(),
        thread: Some(shown.info.thread),
        after: None,
        follow: false,
    }))?;
    let mut rows: Vec<JournalRow> = Vec::new();
    loop {
        match client.next(None)? {
            Reply::Update(ThreadUpdate::Row(row)) => rows.push(row),
            Reply::Update(ThreadUpdate::Grew { text, .. }) => grow(rows.last_mut(), &text),
            Reply::Update(ThreadUpdate::CaughtUp { .. })
            | Reply::Thread { .. }
            | Reply::Decision(_) => {}
            Reply::Progress { text } => output.progress(&text),
            Reply::Done(_) => return Ok(rows),
            Reply::Problem(problem) => return Err(problem.into()),
            other @ (Reply::Note { .. }
            | Reply::Streams
            | Reply::Output { .. }
            | Reply::Net(_)
            | Reply::AnswerRefused { .. }) => return Err(unexpected(&other)),
        }
    }
}

fn grow(row: Option<&mut JournalRow>, more: &str) {
    if let Some(Item::Text { text } | Item::Thought { text }) = row.map(|row| &mut row.item) {
        text.push_str(more);
    }
}
