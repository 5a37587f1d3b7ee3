//! `/api/tokens`: tokens of programs. One is told when it is made and never again (D29).

use super::answer;
use super::call::{Call, Called};
use crate::problem;
use box_api::control::{Outcome, Request};
use box_api::page::{PageAsk, TokenAsk, Tokens};
use hyper::StatusCode;

pub(super) async fn list(call: Call) -> Called {
    let outcome = call.ask(Request::Page(PageAsk::TokenList)).await?;
    let Outcome::Tokens { tokens } = outcome else {
        return Err(problem::unlike(&outcome));
    };
    Ok(answer::json(&Tokens { tokens }))
}

pub(super) async fn add(mut call: Call) -> Called {
    let asked: TokenAsk = call.json().await?;
    let outcome = call.ask(Request::Page(PageAsk::TokenAdd(asked))).await?;
    let Outcome::Token(made) = outcome else {
        return Err(problem::unlike(&outcome));
    };
    Ok(answer::created(&made))
}

pub(super) async fn revoke(call: Call) -> Called {
    let id: String = call.name(0)?;
    call.ask(Request::Page(PageAsk::TokenRevoke { id })).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}
