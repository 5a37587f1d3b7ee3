//! `POST /api/pair`: a link's code for a cookie. The code stands behind `#` in the link, so that
//! it is in no request but this one, in no log and in no history of a proxy.

use super::answer::{self, Answer};
use super::guard::{Passed, is_upgrade};
use super::{Web, gate, me};
use crate::problem;
use box_api::page::{Pair, PairedBrowser};
use box_core::sign_ins::{self, Known};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue, SET_COOKIE};
use hyper::http::request::Parts;
use std::time::Duration;
use tokio::time::timeout;
use zeroize::Zeroizing;

const BODY_BYTES_MAX: usize = 1024;
const BODY_DEADLINE: Duration = Duration::from_secs(20);
/// As long as a sign-in lasts that is not seen, in seconds.
const COOKIE_SECONDS: u32 = 90 * 24 * 60 * 60;

/// Cookies know no ports: hosts on one machine would overwrite each other's.
pub(super) fn cookie_name(web: &Web) -> String {
    format!("box_{}", web.guard.port())
}

pub(super) async fn handle(web: &Web, passed: Passed, head: &Parts, body: Incoming) -> Answer {
    let now_ms = web.door.host.now_ms();
    if is_upgrade(&head.headers) {
        return answer::problem(&problem::body("it asks for an upgrade"));
    }
    let Some(pair) = read(head, body).await else {
        web.pairing.failed(passed.peer, now_ms).await;
        return answer::problem(&problem::body("it has no `code`"));
    };
    // Everybody on this machine has one address: whoever guesses keeps nobody out who knows.
    let guesses = !web.pairing.may(passed.peer, now_ms).await;
    if guesses && !matches!(sign_ins::waits(&web.door.host, &pair.code).await, Ok(true)) {
        return answer::problem(&problem::too_many_tries());
    }
    let agent = gate::agent(&head.headers);
    let paired = sign_ins::pair(&web.door.host, &pair.code, agent, &passed.host);
    let paired = match paired.await {
        Ok(paired) => paired,
        Err(error) => {
            web.pairing.failed(passed.peer, now_ms).await;
            return answer::problem(&problem::pair(error));
        }
    };
    tracing::info!(sign_in = paired.sign_in.id, owner = %paired.caller.owner, "a browser was paired");
    let known = Known {
        sign_in: paired.sign_in.id,
        caller: paired.caller,
    };
    let secure = if passed.secure { "; Secure" } else { "" };
    let cookie = Zeroizing::new(format!(
        "{}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age={COOKIE_SECONDS}{secure}",
        cookie_name(web),
        *paired.cookie
    ));
    let mut done = answer::json(&PairedBrowser {
        me: me::of(&web.door.host, &known),
        proof: paired.proof.to_string(),
    });
    if let Ok(mut value) = HeaderValue::from_str(&cookie) {
        value.set_sensitive(true);
        done.headers_mut().insert(SET_COOKIE, value);
    }
    done
}

async fn read(head: &Parts, body: Incoming) -> Option<Pair> {
    let kind = head.headers.get(CONTENT_TYPE)?.to_str().ok()?;
    if !kind.starts_with("application/json") {
        return None;
    }
    let body = timeout(BODY_DEADLINE, Limited::new(body, BODY_BYTES_MAX).collect());
    let bytes = Zeroizing::new(body.await.ok()?.ok()?.to_bytes().to_vec());
    serde_json::from_slice(&bytes).ok()
}
