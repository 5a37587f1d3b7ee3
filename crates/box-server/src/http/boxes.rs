//! `GET /api/boxes`, one of them, and what befell it.

use super::answer::{self, Answer};
use super::call::{Call, Called};
use crate::problem;
use box_api::Problem;
use box_api::control::{Outcome, Request};
use box_api::page::{Boxes, Events};

pub(super) async fn list(call: Call) -> Called {
    boxes_of(call.ask(Request::List).await?)
}

pub(super) fn boxes_of(outcome: Outcome) -> Called {
    let Outcome::Boxes { boxes } = outcome else {
        return Err(problem::unlike(&outcome));
    };
    Ok(answer::json(&Boxes { boxes }))
}

pub(super) async fn one(call: Call) -> Called {
    let name = call.box_name().await?;
    info_of(call.ask(Request::Info { name }).await?)
}

pub(super) fn info_of(outcome: Outcome) -> Result<Answer, Problem> {
    let Outcome::Info(info) = outcome else {
        return Err(problem::unlike(&outcome));
    };
    Ok(answer::json(&info))
}

pub(super) async fn events(call: Call) -> Called {
    let name = call.box_name().await?;
    let outcome = call.ask(Request::Events { name }).await?;
    let Outcome::Events { events } = outcome else {
        return Err(problem::unlike(&outcome));
    };
    Ok(answer::json(&Events { events }))
}
