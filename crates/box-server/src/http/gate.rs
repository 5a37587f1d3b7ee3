//! The way of a request in: guard, then what needs no cookie, then the cookie or the token, then its
//! route.

use super::answer::{self, Answer};
use super::call::Call;
use super::guard::{self, Passed, Stopped, one};
use super::routes::{self, Found};
use super::{Ends, Web, health, metrics, pair, plain, programs, socket, statics};
use crate::problem;
use box_api::Problem;
use box_core::sign_ins::{self, Known, Shown};
use hyper::body::Incoming;
use hyper::header::{COOKIE, HeaderMap, HeaderName, SEC_WEBSOCKET_PROTOCOL};
use hyper::http::request::Parts;
use hyper::{Method, Request, StatusCode};
use std::sync::Arc;

/// Longest query, bytes.
const QUERY_BYTES_MAX: usize = 8 << 10;
const PROOF: HeaderName = HeaderName::from_static("x-box-proof");
/// What a page's WebSocket speaks.
pub(super) const SOCKET_PROTOCOL: &str = "boxes";

pub(super) async fn pass(web: &Arc<Web>, ends: Ends, request: Request<Incoming>) -> Answer {
    web.counts.request();
    let (head, body) = request.into_parts();
    let answer = match web.guard.judge((ends.local, ends.peer), &head) {
        Err(Stopped::Host(host)) => answer::problem(&problem::misdirected(&host)),
        Err(Stopped::Origin) => answer::problem(&problem::foreign_origin()),
        Ok(passed) => enter(web, (ends, passed), head, body).await,
    };
    web.counts.answer(answer.status());
    answer::finish(answer, &web.door.host.build)
}

async fn enter(
    web: &Arc<Web>,
    (ends, passed): (Ends, Passed),
    head: Parts,
    body: Incoming,
) -> Answer {
    let path = head.uri.path();
    let reads = head.method == Method::GET || head.method == Method::HEAD;
    match path {
        "/api/pair" if head.method == Method::POST => pair::handle(web, passed, &head, body).await,
        "/healthz" if reads => {
            let known = known(web, &passed, &head).await.ok();
            health::handle(web, known.as_ref()).await
        }
        "/metrics" if reads && is_open(web, &passed) => metrics::handle(web).await,
        _ if reads && plain::is_at(path) => plain::handle(web, &passed, &head).await,
        _ if reads && !is_inner(path) => statics::handle(&head),
        _ if guard::is_acp(path) => socket::acp::upgrade(web, &passed, head).await,
        _ => match known(web, &passed, &head).await {
            Ok(known) => {
                web.seats.know(&ends.seat);
                inside(web, (known, passed.host), head, body).await
            }
            Err(problem) => answer::problem(&problem),
        },
    }
}

/// Whether the settings let anybody on this machine read the numbers.
fn is_open(web: &Web, passed: &Passed) -> bool {
    web.door.host.settings.page.metrics.value && passed.peer.is_loopback()
}

/// The box of `/api/boxes/{box}/<last>`.
fn of_box<'p>(path: &'p str, last: &str) -> Option<&'p str> {
    let (name, rest) = path.strip_prefix("/api/boxes/")?.split_once('/')?;
    (rest == last).then_some(name)
}

/// What is not the page's own files.
fn is_inner(path: &str) -> bool {
    let first = path.trim_start_matches('/').split('/').next();
    matches!(first, Some("api" | "ws" | "metrics"))
}

async fn inside(
    web: &Arc<Web>,
    (known, at): (Known, String),
    mut head: Parts,
    body: Incoming,
) -> Answer {
    let path = head.uri.path().to_owned();
    let terminal = of_box(&path, "terminal").filter(|_| head.method == Method::GET);
    match path.as_str() {
        "/metrics" => return metrics::handle(web).await,
        "/ws" => return socket::upgrade(web, known, &mut head),
        _ => {}
    }
    let found = match terminal {
        Some(name) => Found::Terminal(name.to_owned()),
        None => routes::find(&head.method, &path),
    };
    let (run, names) = match found {
        Found::Route(route, names) => (Some(route.run), names),
        Found::Terminal(name) => (None, vec![name]),
        Found::OtherMethod => {
            return answer::problem(&problem::other_method(head.method.as_str(), &path));
        }
        Found::Nothing => return answer::problem(&problem::no_endpoint(&path)),
    };
    let query = head.uri.query().unwrap_or_default();
    if query.len() > QUERY_BYTES_MAX {
        return answer::empty(StatusCode::URI_TOO_LONG);
    }
    let query = url::form_urlencoded::parse(query.as_bytes()).into_owned();
    let call = Call {
        web: Arc::clone(web),
        caller: known.caller,
        sign_in: known.sign_in,
        at,
        names,
        query: query.collect(),
        headers: head.headers.clone(),
        body,
    };
    let Some(run) = run else {
        return socket::terminal::upgrade(&call, &mut head).await;
    };
    match run(call).await {
        Ok(answer) => answer,
        Err(problem) => answer::problem(&problem),
    }
}

/// Whom a request stands for: by its token if it shows one, else by its cookie.
async fn known(web: &Web, passed: &Passed, head: &Parts) -> Result<Known, Problem> {
    if let Some(token) = guard::token(&head.headers) {
        let shown = programs::known(web, passed, token).await?;
        programs::may(shown.scope, &head.method, head.uri.path())?;
        return Ok(shown.known);
    }
    let known = of_browser(web, &head.headers, &passed.host).await;
    known.ok_or_else(problem::signed_out)
}

/// Whom the cookie stands for. A store that does not answer lets nobody in.
async fn of_browser(web: &Web, headers: &HeaderMap, at: &str) -> Option<Known> {
    let name = pair::cookie_name(web);
    let shown = Shown {
        cookie: cookie(headers, &name)?,
        proof: proof(headers)?,
        at,
    };
    match sign_ins::known(&web.door.host, shown).await {
        Ok(known) => known,
        Err(error) => {
            tracing::error!(%error, "a cookie could not be looked up");
            None
        }
    }
}

/// What the page keeps by origin. A browser lets no script set a header of a WebSocket but its
/// protocols, of which the second is it.
fn proof(headers: &HeaderMap) -> Option<&str> {
    one(headers, &PROOF).or_else(|| {
        let (first, second) = one(headers, &SEC_WEBSOCKET_PROTOCOL)?.split_once(',')?;
        (first.trim() == SOCKET_PROTOCOL).then(|| second.trim())
    })
}

/// The value of a cookie that is there once.
pub(super) fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let lines = headers.get_all(COOKIE).iter();
    let mut found = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(named, _)| *named == name)
        .map(|(_, value)| value);
    match (found.next(), found.next()) {
        (Some(value), None) => Some(value),
        _ => None,
    }
}

/// What a browser calls itself.
pub(super) fn agent(headers: &HeaderMap) -> &str {
    one(headers, &hyper::header::USER_AGENT).unwrap_or("a browser without a name")
}
