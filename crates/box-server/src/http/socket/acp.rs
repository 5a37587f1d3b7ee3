//! `GET /api/boxes/{box}/acp`: a box as the agent of somebody's own client, over a WebSocket (C93).
//!
//! The client shows the protocols `acp.v1` and `bearer.<token>` (C122), or the token in
//! `Authorization`; no cookie is looked at. A text frame is a message of JSON-RPC. What is said goes
//! to the threads as from any other client, and they live on when it leaves.

mod agent;

use super::frame::{self, Incoming, Reader, Takes, WireError};
use super::handshake;
use super::session::{self, Writer};
use crate::control::told_to_stop;
use crate::http::Web;
use crate::http::answer::{self, Answer};
use crate::http::guard::{self, Passed, one};
use crate::http::programs;
use crate::problem;
use agent::Agent;
use box_api::page::{ACP_PROTOCOL, PING_MS, TokenScope};
use box_api::{BoxId, BoxName, Problem};
use box_core::boxes;
use box_core::caller::Caller;
use box_core::sign_ins::Known;
use hyper::header::SEC_WEBSOCKET_PROTOCOL;
use hyper::http::request::Parts;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Longest a client may say nothing, not even a pong; it is pinged long before.
const SILENCE_MAX: Duration = Duration::from_mins(5);

/// Who speaks, and to which box.
#[derive(Debug, Clone)]
pub(super) struct Whom {
    pub(super) caller: Caller,
    pub(super) box_id: BoxId,
    pub(super) name: BoxName,
    /// The agent new sessions get.
    pub(super) agent: String,
}

impl Whom {
    /// A name may go to another box while the socket is open; the token does not.
    ///
    /// # Errors
    /// The box is gone, or has another name now.
    async fn is_still_there(&self, web: &Web) -> Result<(), Problem> {
        let name = box_of(web, &self.caller, self.box_id).await?;
        if name == self.name {
            Ok(())
        } else {
            Err(problem::gone())
        }
    }
}

/// Answers the handshake; refused with the reason (C122).
pub(in crate::http) async fn upgrade(web: &Arc<Web>, passed: &Passed, mut head: Parts) -> Answer {
    match admit(web, passed, &head).await {
        Ok((known, whom)) => match handshake(&mut head, ACP_PROTOCOL) {
            Ok((switching, upgrade)) => {
                tokio::spawn(run(Arc::clone(web), known, whom, upgrade));
                switching
            }
            Err(problem) => answer::problem(&problem),
        },
        Err(problem) => answer::problem(&problem),
    }
}

async fn admit(web: &Web, passed: &Passed, head: &Parts) -> Result<(Known, Whom), Problem> {
    let offered = one(&head.headers, &SEC_WEBSOCKET_PROTOCOL).unwrap_or_default();
    if !offered.split(',').any(|name| name.trim() == ACP_PROTOCOL) {
        let why = format!("the protocol `{ACP_PROTOCOL}` is missing");
        return Err(problem::body(&why));
    }
    let token = guard::token(&head.headers)
        .ok_or_else(|| problem::wrong_token("the protocol `bearer.<token>` is missing"))?;
    let shown = programs::known(web, passed, token).await?;
    let (TokenScope::Acp, Some(id)) = (shown.scope, shown.box_id) else {
        return Err(problem::token_not_for("an ACP client"));
    };
    let name = box_of(web, &shown.known.caller, id).await?;
    let asked = head.uri.path().split('/').nth(3).unwrap_or_default();
    if asked != name.as_str() && asked != id.as_str() {
        return Err(problem::token_not_for(&format!("box `{asked}`")));
    }
    let agent = asked_agent(head).unwrap_or_else(|| "claude".to_owned());
    let whom = Whom {
        caller: shown.known.caller,
        box_id: id,
        name,
        agent,
    };
    Ok((shown.known, whom))
}

/// `agent=` of the query.
fn asked_agent(head: &Parts) -> Option<String> {
    let query = head.uri.query()?.as_bytes();
    let mut pairs = url::form_urlencoded::parse(query);
    let (_, agent) = pairs.find(|(name, _)| name == "agent")?;
    Some(agent.into_owned())
}

/// The box by its id: it may have another name than when the token was made.
async fn box_of(web: &Web, caller: &Caller, id: BoxId) -> Result<BoxName, Problem> {
    let all = boxes::list(&web.door.host, caller)
        .await
        .map_err(problem::store)?;
    let found = all.into_iter().find(|record| record.id == id);
    found.map(|record| record.name).ok_or_else(problem::gone)
}

/// Why a socket ends.
enum End {
    Client(WireError),
    Closed,
    /// With the code of the close frame.
    Told(u16),
}

async fn run(web: Arc<Web>, known: Known, whom: Whom, upgrade: OnUpgrade) {
    let Ok(stream) = upgrade.await else { return };
    let (reader, mut writer) = tokio::io::split(TokioIo::new(stream));
    if !web.sockets.enter(&known.sign_in).await {
        return session::shut(&mut writer, 1013).await;
    }
    let mut stop = web.door.stop.subscribe();
    let agent = Agent::new(&web, whom);
    let reader = Reader::new(reader, Takes::Texts);
    let end = tokio::select! {
        end = converse(agent, reader, &mut writer) => end,
        // Policy violation (RFC 6455 §7.4.1), and going away.
        () = session::revoked(&web, &known.sign_in) => End::Told(1008),
        () = told_to_stop(&mut stop) => End::Told(1001),
    };
    let code = match end {
        End::Client(error) => {
            tracing::debug!(%error, "an ACP client went away");
            error.code()
        }
        End::Closed => 1000,
        End::Told(code) => code,
    };
    web.sockets.leave(&known.sign_in).await;
    session::shut(&mut writer, code).await;
}

type Inbox = Reader<tokio::io::ReadHalf<TokioIo<hyper::upgrade::Upgraded>>>;

async fn converse(mut agent: Agent, mut reader: Inbox, writer: &mut Writer) -> End {
    let every = Duration::from_millis(PING_MS);
    let (mut ping_at, mut heard_at) = (Instant::now() + every, Instant::now());
    loop {
        let lines = tokio::select! {
            incoming = reader.next() => {
                heard_at = Instant::now();
                match incoming {
                    Ok(Incoming::Text(text)) => agent.hear(&text).await,
                    Ok(Incoming::Ping(body)) => {
                        if let Err(error) = session::write(writer, &frame::pong(&body)).await {
                            return End::Client(error);
                        }
                        Vec::new()
                    }
                    Ok(Incoming::Pong | Incoming::Binary(_)) => Vec::new(),
                    Ok(Incoming::Close) => return End::Closed,
                    Err(error) => return End::Client(error),
                }
            }
            lines = agent.told() => lines,
            // A turn may be silent for minutes (C123): whoever stands between hears something.
            () = sleep_until(ping_at) => {
                ping_at = Instant::now() + every;
                if let Err(error) = session::write(writer, &frame::ping()).await {
                    return End::Client(error);
                }
                Vec::new()
            }
            () = sleep_until(heard_at + SILENCE_MAX) => return End::Client(WireError::Gone),
        };
        for line in lines {
            ping_at = Instant::now() + every;
            let text = frame::text(&line.to_string());
            if let Err(error) = session::write(writer, &text).await {
                return End::Client(error);
            }
        }
    }
}
