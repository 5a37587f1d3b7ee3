//! What goes back: bodies, the headers every answer has, and failures as problem JSON (RFC 9457).

use box_api::{Problem, ProblemKind};
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;

pub(super) type Body = Full<Bytes>;
pub(super) type Answer = Response<Body>;

/// Scripts and styles only from here, no sinks for text in scripts but through the page's one
/// policy (it registers its worker by it), no frames either way, no plugins, no beacons.
const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data: blob:; font-src 'self'; media-src 'self' blob:; connect-src 'self'; \
    manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types boxes";

/// Headers of everything that is answered.
const ALWAYS: [(&str, &str); 7] = [
    ("content-security-policy", CSP),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    (
        "permissions-policy",
        "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
    ),
];

/// Which build the host is, so that an open page can say that it is old.
const BUILD: HeaderName = HeaderName::from_static("x-box-build");

/// Adds what every answer has; what is not said to be kept is kept by nobody.
pub(super) fn finish(mut answer: Answer, build: &str) -> Answer {
    let headers = answer.headers_mut();
    for (name, value) in ALWAYS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Ok(build) = HeaderValue::from_str(build) {
        headers.insert(BUILD, build);
    }
    if !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    answer
}

/// An answer of a type and a status.
pub(super) fn of(status: StatusCode, media_type: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    answer
}

pub(super) fn empty(status: StatusCode) -> Answer {
    let mut answer = Response::new(Body::default());
    *answer.status_mut() = status;
    answer
}

pub(super) fn json(value: &impl Serialize) -> Answer {
    with_status(StatusCode::OK, value)
}

pub(super) fn created(value: &impl Serialize) -> Answer {
    with_status(StatusCode::CREATED, value)
}

fn with_status(status: StatusCode, value: &impl Serialize) -> Answer {
    match serde_json::to_vec(value) {
        Ok(body) => of(status, "application/json", body),
        Err(error) => {
            tracing::error!(%error, "an answer could not be written");
            empty(StatusCode::INTERNAL_SERVER_ERROR)
        }
    }
}

pub(super) fn problem(problem: &Problem) -> Answer {
    problem_as(status_of(problem), problem)
}

pub(super) fn problem_as(status: StatusCode, problem: &Problem) -> Answer {
    let mut answer = with_status(status, problem);
    answer.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/problem+json"),
    );
    answer
}

/// The status a problem has; programs look at its slug.
pub(super) fn status_of(problem: &Problem) -> StatusCode {
    let slug = problem.slug.as_str();
    match problem.kind {
        ProblemKind::Failed if slug.ends_with("-not-found") || GONE.contains(&slug) => {
            StatusCode::NOT_FOUND
        }
        ProblemKind::Failed if CONFLICTS.contains(&slug) => StatusCode::CONFLICT,
        ProblemKind::Failed if UNFIT.contains(&slug) => StatusCode::UNPROCESSABLE_ENTITY,
        ProblemKind::Failed => StatusCode::INTERNAL_SERVER_ERROR,
        ProblemKind::Usage if slug == "other-method" => StatusCode::METHOD_NOT_ALLOWED,
        ProblemKind::Usage => StatusCode::BAD_REQUEST,
        ProblemKind::Refused if slug.starts_with("too-many") => StatusCode::TOO_MANY_REQUESTS,
        ProblemKind::Refused if slug == "signed-out" => StatusCode::UNAUTHORIZED,
        ProblemKind::Refused if slug == "other-host" => StatusCode::MISDIRECTED_REQUEST,
        ProblemKind::Refused => StatusCode::FORBIDDEN,
        ProblemKind::Engine => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// What is not there, or not any more.
const GONE: &[&str] = &[
    "box-gone",
    "no-credential",
    "no-thread",
    "not-in-trash",
    "port-not-shown",
    "prompt-not-queued",
    "thread-gone",
    "unknown-process",
];

/// What would have worked in another state of the thing, or at another host.
const CONFLICTS: &[&str] = &[
    "agent-not-installed",
    "box-ambiguous",
    "box-busy",
    "decision-over",
    "host-runs",
    "label-taken",
    "name-taken",
    "no-archives",
    "no-disk-usage",
    "no-logs",
    "no-page",
    "no-snapshots",
    "not-attached",
    "not-parked",
    "not-running",
    "port-busy",
    "port-shown",
    "process-runs",
    "unpushed",
];

/// What was understood, tried, and did not work for what was asked.
const UNFIT: &[&str] = &[
    "credential-command",
    "not-imported",
    "not-run",
    "not-whole",
    "repository-not-cloned",
    "setup-failed",
];
