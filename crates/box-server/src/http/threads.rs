//! `GET /api/threads` and those of a box; a new one without a prompt.

use super::answer;
use super::call::{Call, Called};
use crate::problem;
use box_api::BoxName;
use box_api::control::{Outcome, Request, ThreadOpen, ThreadsAsk};
use box_api::page::{Begun, OpenAsk, Threads};

pub(super) async fn all(call: Call) -> Called {
    list(&call, None).await
}

pub(super) async fn of_box(call: Call) -> Called {
    let name = call.box_name().await?;
    list(&call, Some(name)).await
}

async fn list(call: &Call, name: Option<BoxName>) -> Called {
    let archived = call.asked("archived")?.unwrap_or_default();
    let outcome = call
        .ask(Request::Threads(ThreadsAsk { name, archived }))
        .await?;
    let Outcome::Threads { threads } = outcome else {
        return Err(problem::unlike(&outcome));
    };
    Ok(answer::json(&Threads { threads }))
}

pub(super) async fn open(mut call: Call) -> Called {
    let OpenAsk { agent, allow_all } = call.json().await?;
    let record = call.box_named().await?;
    let name = record.name.clone();
    let asked = ThreadOpen {
        name,
        agent,
        allow_all,
    };
    let outcome = call.ask(Request::ThreadOpen(asked)).await?;
    let Outcome::Thread { thread } = outcome else {
        return Err(problem::unlike(&outcome));
    };
    Ok(answer::created(&Begun {
        box_id: record.id,
        name: record.name,
        thread,
    }))
}
