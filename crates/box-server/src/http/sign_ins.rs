//! `/api/sign-ins`: browsers that are let in; a link for another one; and the end of one.

use super::answer;
use super::call::{Call, Called};
use crate::problem;
use box_api::page::{NewLink, SignIns};
use box_core::sign_ins;
use hyper::StatusCode;

pub(super) async fn list(call: Call) -> Called {
    let sign_ins = sign_ins::list(call.host(), &call.caller).await;
    let sign_ins = sign_ins.map_err(problem::store)?;
    Ok(answer::json(&SignIns { sign_ins }))
}

pub(super) async fn link(call: Call) -> Called {
    let link = sign_ins::link(call.host(), &call.caller).await;
    let link = link.map_err(problem::link)?;
    Ok(answer::created(&NewLink {
        link: link.link(),
        ends_at_ms: link.ends_at_ms,
    }))
}

pub(super) async fn revoke(call: Call) -> Called {
    let id: String = call.name(0)?;
    sign_ins::revoke(call.host(), &call.caller, &id)
        .await
        .map_err(problem::revoke)?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}
