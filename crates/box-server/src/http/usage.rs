//! `GET /api/usage`: what boxes use now.

use super::answer;
use super::call::{Call, Called};
use crate::problem;
use box_api::control::{Outcome, Request};
use box_api::page::UsageNow;

pub(super) async fn handle(call: Call) -> Called {
    let outcome = call.ask(Request::Top).await?;
    let Outcome::Usage { boxes } = outcome else {
        return Err(problem::unlike(&outcome));
    };
    Ok(answer::json(&UsageNow { boxes }))
}
