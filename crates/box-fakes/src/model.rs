//! A model server: the APIs of several vendors as their agents use them, scripted by a test.
//!
//! Scripts are keyed by a part of the prompt, and the place in a script is the number of
//! assistant messages since that prompt, so a client that repeats a request gets the same
//! answer. Side requests (titles, suggestions, settings, telemetry) are answered and listed and
//! move no script. What breaks the API's rules is answered 400 and kept for the test to see.

mod api;
mod asked;
mod chat;
mod check;
mod gemini;
mod messages;
mod responses;
mod script;
mod side;
mod state;
mod stream;
mod voice;

pub use api::Api;
pub use check::Refusal;
pub use script::{Fault, Script, Step};
pub(crate) use state::ModelState;
pub use state::Turn;

use crate::rig::{AnswerBody, Net, Recorded, internet::Internet, site};
use anyhow::Result;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
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
    api: Api,
}

impl Model {
    pub(crate) fn new(net: Net, api: Api) -> Self {
        Self { net, api }
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

    /// Everything sent to the model's hosts.
    pub fn requests(&self) -> Vec<Recorded> {
        let hosts = self.api.hosts().iter();
        hosts.flat_map(|host| self.net.requests(host)).collect()
    }
}

/// Answers one request to the host of an API.
pub(crate) async fn answer(
    internet: Rc<Internet>,
    api: Api,
    number: usize,
    request: Request<Incoming>,
) -> Response<AnswerBody> {
    let body = Limited::new(request.into_body(), BODY_BYTES_MAX)
        .collect()
        .await;
    let body = match body {
        Ok(body) => body.to_bytes(),
        // Whoever asked is gone in the middle of it, as an agent that is stopped: that is no request.
        Err(error) if !error.is::<LengthLimitError>() => {
            internet.with(|world| world.note(format!("model: a request broke off: {error}")));
            return failure(api, StatusCode::BAD_REQUEST, "api_error", "broken off");
        }
        Err(_) => Bytes::new(),
    };
    let seen = internet.with(|world| {
        world.body_read(number, body.len() as u64);
        world
            .requests
            .get(number)
            .cloned()
            .map(|head| (head, world.model.token(api)))
    });
    let Some((head, token)) = seen else {
        let status = StatusCode::INSUFFICIENT_STORAGE;
        return failure(api, status, "api_error", "too many requests recorded");
    };
    let handled = api
        .check_credential(&head, &token)
        .and_then(|()| match api {
            Api::Anthropic => handle(&internet, &head, &body),
            Api::OpenAi => openai(&internet, &head, &body),
            Api::Gemini => google(&internet, &head, &body),
        });
    let mut response = handled.unwrap_or_else(|refusal| {
        let (status, kind) = (refusal.status, refusal.kind());
        let response = failure(api, status, kind, &refusal.why);
        internet.with(|world| {
            world.note(format!(
                "model refused {} {}: {}",
                head.method, head.path, refusal.why
            ));
            world.model.refused(refusal);
        });
        response
    });
    if let Ok(id) = http::HeaderValue::from_str(&format!("req_rig{number:020}")) {
        response.headers_mut().insert("request-id", id);
    }
    response
}

fn handle(
    internet: &Rc<Internet>,
    head: &Recorded,
    body: &Bytes,
) -> Result<Response<AnswerBody>, Refusal> {
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

fn openai(
    internet: &Rc<Internet>,
    head: &Recorded,
    body: &Bytes,
) -> Result<Response<AnswerBody>, Refusal> {
    let path = head.path.split('?').next().unwrap_or_default();
    // Where `OpenAI`'s API is one of several that a host has.
    let path = path.strip_prefix("/compatible-mode").unwrap_or(path);
    let new = || internet.with(|world| world.model.next_id());
    match (head.method.as_str(), path) {
        ("POST", "/v1/responses") => {
            let body = check::any_json(head, body)?;
            let asked = listed(head, responses::read(&body))?;
            let voice = responses::Voice::new(new(), &asked.model);
            say(
                internet,
                (Api::OpenAi, head),
                &asked,
                (voice, stream_of(&body)),
            )
        }
        ("POST", "/v1/chat/completions") => {
            let body = check::any_json(head, body)?;
            let asked = listed(head, chat::read(&body))?;
            let voice = chat::Voice::new(new(), &asked.model);
            say(
                internet,
                (Api::OpenAi, head),
                &asked,
                (voice, stream_of(&body)),
            )
        }
        // As a web socket: the client is told to ask in the other way, which it does at once.
        ("GET", "/v1/responses") => {
            side::note(internet, head, "web socket");
            let (status, why) = (StatusCode::UPGRADE_REQUIRED, "no web sockets here");
            Ok(failure(Api::OpenAi, status, "invalid_request_error", why))
        }
        ("GET", "/v1/models") => {
            side::note(internet, head, "side");
            let model = json!({"id": "gpt-rig", "object": "model", "owned_by": "rig"});
            Ok(ok(&json!({"object": "list", "data": [model]})))
        }
        _ => Ok(side::unknown(internet, Api::OpenAi, head)),
    }
}

fn google(
    internet: &Rc<Internet>,
    head: &Recorded,
    body: &Bytes,
) -> Result<Response<AnswerBody>, Refusal> {
    let path = head.path.split('?').next().unwrap_or_default();
    let named = path.strip_prefix("/v1beta/models/");
    let Some((model, act)) = named.and_then(|named| named.split_once(':')) else {
        return Ok(side::unknown(internet, Api::Gemini, head));
    };
    let stream = match act {
        "streamGenerateContent" => Stream::Yes,
        "generateContent" => Stream::No,
        "countTokens" => {
            side::note(internet, head, "count");
            return Ok(ok(&json!({"totalTokens": 1 + body.len() / 4})));
        }
        _ => return Ok(side::unknown(internet, Api::Gemini, head)),
    };
    let body = check::any_json(head, body)?;
    let asked = listed(head, gemini::read(model, &body))?;
    let number = internet.with(|world| world.model.next_id());
    let voice = gemini::Voice::new(number, &asked.model);
    say(internet, (Api::Gemini, head), &asked, (voice, stream))
}

/// Whether an answer is wanted as events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stream {
    Yes,
    No,
}

fn stream_of(body: &Value) -> Stream {
    if body["stream"] == true {
        Stream::Yes
    } else {
        Stream::No
    }
}

fn listed(head: &Recorded, asked: Option<asked::Asked>) -> Result<asked::Asked, Refusal> {
    let why = "the conversation is missing";
    let asked = asked.ok_or_else(|| Refusal::of(head, StatusCode::BAD_REQUEST, why))?;
    asked.check(head)?;
    Ok(asked)
}

#[expect(clippy::unnecessary_wraps, reason = "the end of what may refuse")]
fn say(
    internet: &Rc<Internet>,
    (api, head): (Api, &Recorded),
    asked: &asked::Asked,
    (voice, stream): (impl voice::Dialect + 'static, Stream),
) -> Result<Response<AnswerBody>, Refusal> {
    let steps = asked.answer(internet, head);
    if let Some(Step::Fail { fault, .. }) = steps.first() {
        return Ok(json_answer(fault.status(), &api.fault(fault)));
    }
    Ok(match stream {
        Stream::Yes => voice::start(internet, voice, steps),
        Stream::No => ok(&voice::whole(internet, &voice, &steps)),
    })
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
fn failure(api: Api, status: StatusCode, kind: &str, message: &str) -> Response<AnswerBody> {
    json_answer(status, &api.error(status, kind, message))
}
