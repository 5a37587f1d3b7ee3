//! `GET /api/agents`: agents there are.

use super::answer;
use super::call::{Call, Called};
use crate::problem;
use box_api::control::{Outcome, Request};
use box_api::page::Agents;

pub(super) async fn handle(call: Call) -> Called {
    let outcome = call.ask(Request::AgentList).await?;
    let Outcome::Agents { agents } = outcome else {
        return Err(problem::unlike(&outcome));
    };
    Ok(answer::json(&Agents { agents }))
}
