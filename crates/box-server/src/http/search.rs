//! `POST /api/search`: full text search over threads. A body, so that what is looked for is in no log.

use super::answer;
use super::call::{Call, Called};
use crate::problem;
use box_api::control::{Outcome, Request};

pub(super) async fn handle(mut call: Call) -> Called {
    let asked = call.json().await?;
    let outcome = call.ask(Request::Search(asked)).await?;
    let Outcome::Found(found) = outcome else {
        return Err(problem::unlike(&outcome));
    };
    Ok(answer::json(&found))
}
