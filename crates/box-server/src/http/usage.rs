//! `GET /api/usage`: what boxes use now, and what the machine below them has.

mod machine;

use super::answer;
use super::call::{Call, Called};
use crate::problem;
use box_api::control::{Outcome, Request};
use box_api::page::UsageNow;

pub(super) async fn handle(call: Call) -> Called {
    let before = machine::ticks().await;
    let outcome = call.ask(Request::Top).await?;
    let Outcome::Usage { boxes } = outcome else {
        return Err(problem::unlike(&outcome));
    };
    let machine = machine::usage(&call.host().paths.data, before).await;
    Ok(answer::json(&UsageNow { boxes, machine }))
}
