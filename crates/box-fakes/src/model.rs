//! A model server: Anthropic's Messages API as Claude Code uses it, scripted by a test.
//!
//! Scripts are keyed by a part of the prompt, and the place in a script is the number of
//! assistant messages since that prompt, so a client that repeats a request gets the same
//! answer. Side requests (titles, suggestions, settings, telemetry) are answered and listed and
//! move no script. What breaks the API's rules is answered 400 and kept for the test to see.

mod check;
mod messages;
mod script;
mod side;
mod state;
mod stream;

pub use check::Refusal;
pub use script::{Fault, Script, Step};
pub(crate) use state::ModelState;
pub use state::Turn;

use crate::rig::{AnswerBody, Net, Recorded, internet::Internet, site};
use anyhow::Result;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use serde_json::{Value, json};
use std::rc::Rc;
use std::time::Duration;

/// Where Claude Code looks for its model.
pub const HOST: &str = "api.anthropic.com";
/// The API's own limit for a request.
const BODY_BYTES_MAX: usize = 32 << 20;

/// The model server as a test sees it.
#[derive(Debug, Clone)]
pub struct Model {
    net: Net,
}

impl Model {
    pub(crate) fn new(net: Net) -> Self {
        Self { net }
    }

    /// Adds a script; of two that fit a prompt the one added first counts.
    pub fn script(&self, script: Script) {
        self.net.ask(move |world| world.model.scripts.push(script));
    }

    /// Lets everybody through a gate who waits there or comes later.
    pub fn open(&self, gate: &str) {
        let gate = gate.to_owned();
        self.net
            .ask(move |world| world.model.gates.entry(gate).or_default().open = true);
    }

    /// Waits until an answer stands at a gate.
    ///
    /// # Errors
    /// When `deadline` has passed.
    pub fn wait_at(&self, gate: &str, deadline: Duration) -> Result<()> {
        let name = gate.to_owned();
        self.net.wait_for(
            &format!("an answer at gate `{gate}`"),
            deadline,
            move |world| {
                world
                    .model
                    .gates
                    .get(&name)
                    .filter(|gate| gate.reached > 0)
                    .map(|_| ())
            },
        )
    }

    /// The requests that were answered from a script, in order.
    pub fn turns(&self) -> Vec<Turn> {
        self.net.ask(|world| world.model.turns.clone())
    }

    /// Requests that broke a rule or came without the one right credential.
    pub fn refusals(&self) -> Vec<Refusal> {
        self.net.ask(|world| world.model.refusals.clone())
    }

    /// Requests beside the script: `<method> <path>`, with a word for what it was.
    pub fn side_requests(&self) -> Vec<String> {
        self.net.ask(|world| world.model.sides.clone())
    }

    /// Everything sent to the model's host.
    pub fn requests(&self) -> Vec<Recorded> {
        self.net.requests(HOST)
    }
}

/// Answers one request to [`HOST`].
pub(crate) async fn answer(
    internet: Rc<Internet>,
    number: usize,
    request: Request<Incoming>,
) -> Response<AnswerBody> {
    let body = Limited::new(request.into_body(), BODY_BYTES_MAX)
        .collect()
        .await;
    let body = body
        .map(http_body_util::Collected::to_bytes)
        .unwrap_or_default();
    let seen = internet.with(|world| {
        world.body_read(number, body.len() as u64);
        world
            .requests
            .get(number)
            .cloned()
            .map(|head| (head, world.model.token()))
    });
    let Some((head, token)) = seen else {
        return failure(
            StatusCode::INSUFFICIENT_STORAGE,
            "api_error",
            "too many requests recorded",
        );
    };
    let mut response = match handle(&internet, &head, &token, &body) {
        Ok(response) => response,
        Err(refusal) => {
            let (status, kind) = (refusal.status, refusal.kind());
            let response = failure(status, kind, &refusal.why);
            internet.with(|world| {
                world.note(format!(
                    "model refused {} {}: {}",
                    head.method, head.path, refusal.why
                ));
                world.model.refused(refusal);
            });
            response
        }
    };
    if let Ok(id) = http::HeaderValue::from_str(&format!("req_rig{number:020}")) {
        response.headers_mut().insert("request-id", id);
    }
    response
}

fn handle(
    internet: &Rc<Internet>,
    head: &Recorded,
    token: &str,
    body: &Bytes,
) -> Result<Response<AnswerBody>, Refusal> {
    check::credential(head, token)?;
    let path = head.path.split('?').next().unwrap_or_default();
    match (head.method.as_str(), path) {
        ("POST", "/v1/messages") => {
            let body = check::messages(head, body)?;
            Ok(messages::answer(internet, head, &body))
        }
        ("POST", "/v1/messages/count_tokens") => {
            check::json(head, body)?;
            side::note(internet, head, "count");
            Ok(ok(&json!({"input_tokens": 1 + body.len() / 4})))
        }
        _ => Ok(side::answer(internet, head, path)),
    }
}

fn ok(value: &Value) -> Response<AnswerBody> {
    json_answer(StatusCode::OK, value)
}

fn json_answer(status: StatusCode, value: &Value) -> Response<AnswerBody> {
    let mut response = site::whole(status, value.to_string().into_bytes());
    let json = http::HeaderValue::from_static("application/json");
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, json);
    response
}

/// An error as the API words it.
fn failure(status: StatusCode, kind: &str, message: &str) -> Response<AnswerBody> {
    let body = json!({"type": "error", "error": {"type": kind, "message": message}});
    json_answer(status, &body)
}
