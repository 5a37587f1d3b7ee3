//! `GET /api/boxes/{box}/policy`: what a box may reach.

use super::answer;
use super::call::{Call, Called};
use crate::problem;
use box_api::control::{Outcome, Request};
use box_api::network::PolicyAsk;

pub(super) async fn handle(call: Call) -> Called {
    let name = call.box_name().await?;
    let outcome = call.ask(Request::Policy(PolicyAsk::Show { name })).await?;
    let Outcome::Policy(shown) = outcome else {
        return Err(problem::unlike(&outcome));
    };
    Ok(answer::json(&shown))
}
