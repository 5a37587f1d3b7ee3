//! `POST /api/boxes/{box}/remove`: into the trash, or at once.

use super::answer;
use super::call::{Call, Called};
use box_api::control::{Remove, Request, Target};
use box_api::page::RemoveAsk;
use hyper::StatusCode;

pub(super) async fn handle(mut call: Call) -> Called {
    let RemoveAsk {
        how,
        workspace,
        unpushed,
    } = call.json_or_default().await?;
    let remove = Remove {
        target: Target::Box(call.box_name().await?),
        how,
        workspace,
        unpushed,
    };
    call.ask(Request::Remove(remove)).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}
