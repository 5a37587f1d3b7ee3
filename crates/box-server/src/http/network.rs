//! `GET /api/boxes/{box}/net`: what a box did over the network.

use super::answer;
use super::call::{Call, Called};
use crate::problem;
use box_api::control::{Outcome, Request};
use box_api::network::Net;
use box_api::page::NetLog;

pub(super) async fn handle(call: Call) -> Called {
    let net = Net {
        name: call.box_name().await?,
        follow: false,
        since_ms: call.asked("since_ms")?.unwrap_or_default(),
    };
    let outcome = call.ask(Request::Net(net)).await?;
    let Outcome::Net { lines } = outcome else {
        return Err(problem::unlike(&outcome));
    };
    Ok(answer::json(&NetLog { lines }))
}
