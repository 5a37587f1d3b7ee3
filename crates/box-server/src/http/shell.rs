//! `POST /api/threads/{thread}/shell`: runs a `!` line; what it prints comes with the journal.

use super::answer;
use super::call::{Call, Called};
use crate::problem;
use box_api::control::{Outcome, Request, ShellLine};
use box_api::page::ShellAsk;

pub(super) async fn handle(mut call: Call) -> Called {
    let ShellAsk { line } = call.json().await?;
    let (handle, record) = call.thread_named().await?;
    let asked = ShellLine {
        name: record.name,
        thread: Some(handle.thread()),
        line,
    };
    let outcome = call.ask(Request::ShellLine(asked)).await?;
    let Outcome::ShellEnded(ended) = outcome else {
        return Err(problem::unlike(&outcome));
    };
    Ok(answer::json(&ended))
}
