//! `GET /healthz`: whether the host lives; with a cookie, how it is (C33).

use super::Web;
use super::answer::{self, Answer};
use super::call::ask;
use crate::control::client::PageWire;
use box_api::control::{Outcome, Request};
use box_core::sign_ins::Known;
use serde_json::json;
use std::sync::Arc;

pub(super) async fn handle(web: &Arc<Web>, known: Option<&Known>) -> Answer {
    let Some(known) = known else {
        return answer::json(&json!({ "ok": true }));
    };
    let status = ask(web, known.caller, Request::Status, PageWire::default()).await;
    let Ok(Outcome::Status(status)) = status else {
        return answer::json(&json!({ "ok": false, "version": web.door.host.build }));
    };
    answer::json(&json!({
        "ok": status.egress,
        "version": status.build,
        "boxes": { "running": status.boxes_running, "stopped": status.boxes_stopped },
        "egress": { "answers": status.egress },
        "sockets": web.sockets.count(),
    }))
}
