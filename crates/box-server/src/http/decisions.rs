//! `GET /api/decisions` and how they are answered. The first answer wins; the second is told whose
//! it was.

use super::answer;
use super::call::{Call, Called};
use crate::problem;
use box_api::DecisionId;
use box_api::control::{Outcome, Request};
use box_api::page::{AnswerAsk, Decisions};
use hyper::StatusCode;

pub(super) async fn list(call: Call) -> Called {
    let outcome = call.ask(Request::Decisions { follow: false }).await?;
    let Outcome::Decisions { decisions } = outcome else {
        return Err(problem::unlike(&outcome));
    };
    Ok(answer::json(&Decisions { decisions }))
}

pub(super) async fn answer(mut call: Call) -> Called {
    let AnswerAsk { option } = call.json().await?;
    let decision = DecisionId(call.name(0)?);
    call.ask(Request::Answer { decision, option }).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

pub(super) async fn form(mut call: Call) -> Called {
    let answer = call.json().await?;
    let decision = DecisionId(call.name(0)?);
    call.ask(Request::AnswerForm { decision, answer }).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}
