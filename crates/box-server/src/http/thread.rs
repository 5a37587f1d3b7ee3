//! `/api/threads/{thread}`: one thread beside its journal, and what is done with it.

use super::answer;
use super::call::{Call, Called};
use super::journal;
use crate::problem;
use box_api::control::{Outcome, Park, Request, ThreadAsk};
use box_api::page::{ParkAsk, ParkedThreads};

pub(super) async fn show(call: Call) -> Called {
    let (handle, _) = call.thread_named().await?;
    let head = journal::head(&call.web, call.caller, handle.thread()).await?;
    Ok(answer::json(&head))
}

pub(super) async fn act(mut call: Call) -> Called {
    let act = call.json().await?;
    let (handle, record) = call.thread_named().await?;
    let asked = ThreadAsk {
        name: record.name,
        thread: Some(handle.thread()),
        act,
    };
    let outcome = call.ask(Request::Thread(asked)).await?;
    let Outcome::ThreadShown(shown) = outcome else {
        return Err(problem::unlike(&outcome));
    };
    Ok(answer::json(&shown))
}

pub(super) async fn park(mut call: Call) -> Called {
    let ParkAsk { until_ms } = call.json_or_default().await?;
    let (handle, record) = call.thread_named().await?;
    let asked = Park {
        name: record.name,
        thread: Some(handle.thread()),
        until_ms,
    };
    parked(call.ask(Request::Park(asked)).await?)
}

pub(super) async fn resume(call: Call) -> Called {
    let (handle, record) = call.thread_named().await?;
    let request = Request::Resume {
        name: record.name,
        thread: Some(handle.thread()),
    };
    parked(call.ask(request).await?)
}

fn parked(outcome: Outcome) -> Called {
    let Outcome::Parking { threads } = outcome else {
        return Err(problem::unlike(&outcome));
    };
    Ok(answer::json(&ParkedThreads { threads }))
}
