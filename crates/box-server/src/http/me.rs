//! `GET /api/me` and `POST /api/sign-out`: this browser's own sign-in.

use super::answer;
use super::call::{Call, Called};
use super::pair::cookie_name;
use crate::problem;
use box_api::page::{Me, PAGE_PROTOCOL, TierWord};
use box_core::Host;
use box_core::caller::Tier;
use box_core::sign_ins::{self, Known};
use hyper::StatusCode;
use hyper::header::{HeaderValue, SET_COOKIE};

pub(super) async fn handle(call: Call) -> Called {
    let known = Known {
        sign_in: call.sign_in.clone(),
        caller: call.caller,
    };
    Ok(answer::json(&of(call.host(), &known)))
}

pub(super) async fn sign_out(call: Call) -> Called {
    sign_ins::revoke(call.host(), &call.caller, &call.sign_in)
        .await
        .map_err(problem::revoke)?;
    let mut done = answer::empty(StatusCode::NO_CONTENT);
    let name = cookie_name(&call.web);
    let gone = format!("{name}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0");
    if let Ok(value) = HeaderValue::from_str(&gone) {
        done.headers_mut().insert(SET_COOKIE, value);
    }
    Ok(done)
}

pub(super) fn of(host: &Host, known: &Known) -> Me {
    Me {
        build: host.build.clone(),
        protocol: PAGE_PROTOCOL,
        owner: known.caller.owner,
        tier: match known.caller.tier {
            Tier::Admin => TierWord::Admin,
            Tier::Restricted => TierWord::Restricted,
        },
        sign_in: known.sign_in.clone(),
        now_ms: host.now_ms(),
    }
}
