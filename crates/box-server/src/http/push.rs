//! `/api/push`: which browsers are told while nobody looks (C110–C117).

use super::answer;
use super::call::{Call, Called};
use crate::problem;
use box_api::page::{PushAsk, PushKey};
use box_core::push;
use hyper::StatusCode;
use hyper::header::ORIGIN;

pub(super) async fn state(call: Call) -> Called {
    let state = push::state(call.host(), &call.caller, &call.sign_in).await;
    Ok(answer::json(&state.map_err(problem::store)?))
}

pub(super) async fn key(call: Call) -> Called {
    let key = push::public_key(call.host()).await;
    let key = key.map_err(problem::push)?;
    Ok(answer::json(&PushKey { key }))
}

pub(super) async fn subscribe(mut call: Call) -> Called {
    let asked: PushAsk = call.json().await?;
    // The guard has found it to be the page's own.
    let origin = call.headers.get(ORIGIN);
    let origin = origin.and_then(|origin| origin.to_str().ok());
    let by = (call.sign_in.as_str(), origin.unwrap_or_default());
    let device = push::subscribe(call.host(), &call.caller, by, asked).await;
    Ok(answer::created(&device.map_err(problem::push)?))
}

pub(super) async fn unsubscribe(call: Call) -> Called {
    let sign_in: String = call.name(0)?;
    let gone = push::unsubscribe(call.host(), &call.caller, &sign_in).await;
    gone.map_err(problem::push)?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

pub(super) async fn test(call: Call) -> Called {
    let tested = push::test(call.host(), &call.sign_in).await;
    Ok(answer::json(&tested.map_err(problem::push)?))
}
