//! `GET /ws`: the page's one WebSocket (RFC 6455).

pub(super) mod acp;
mod commands;
mod follow;
mod frame;
mod lists;
mod session;
pub(super) mod terminal;

use super::Web;
use super::answer::{self, Answer};
use super::gate;
use super::guard::one;
use crate::problem;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use box_api::Problem;
use box_core::sign_ins::Known;
use commands::Done;
use hyper::header::{
    CONNECTION, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::http::request::Parts;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, StatusCode};
use hyper_util::rt::TokioIo;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio::sync::watch;

/// Sockets of one sign-in.
const SOCKETS_MAX: usize = 64;
/// RFC 6455 §1.3
const ACCEPT_SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// A key is 16 bytes in base64.
const KEY_CHARS: usize = 24;

/// The open sockets, and what their commands came to.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    open: Mutex<HashMap<String, usize>>,
    count: watch::Sender<usize>,
    done: Done,
    terminals: terminal::Terminals,
}

impl Sockets {
    pub(super) fn count(&self) -> usize {
        *self.count.borrow()
    }

    /// Whether there was room for one more.
    async fn enter(&self, sign_in: &str) -> bool {
        let mut open = self.open.lock().await;
        let count = open.entry(sign_in.to_owned()).or_default();
        if *count >= SOCKETS_MAX {
            return false;
        }
        *count += 1;
        self.count.send_modify(|count| *count += 1);
        true
    }

    async fn leave(&self, sign_in: &str) {
        let mut open = self.open.lock().await;
        if let Some(count) = open.get_mut(sign_in) {
            *count -= 1;
            if *count == 0 {
                open.remove(sign_in);
            }
        }
        self.count.send_modify(|count| *count -= 1);
    }
}

/// Answers the handshake; the socket then goes on by itself.
pub(super) fn upgrade(web: &Arc<Web>, known: Known, head: &mut Parts) -> Answer {
    match handshake(head, gate::SOCKET_PROTOCOL) {
        Ok((switching, upgrade)) => {
            tokio::spawn(run(Arc::clone(web), known, upgrade));
            switching
        }
        Err(problem) => answer::problem(&problem),
    }
}

/// The answer to a handshake that chooses `protocol`, and what comes of it.
fn handshake(head: &mut Parts, protocol: &'static str) -> Result<(Answer, OnUpgrade), Problem> {
    let Some(accept) = accept(head) else {
        return Err(problem::body("a WebSocket of version 13 is asked for"));
    };
    let Some(upgrade) = head.extensions.remove::<OnUpgrade>() else {
        return Err(problem::body("the connection cannot be upgraded"));
    };
    let mut switching = answer::empty(StatusCode::SWITCHING_PROTOCOLS);
    let headers = switching.headers_mut();
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol));
    Ok((switching, upgrade))
}

async fn run(web: Arc<Web>, known: Known, upgrade: OnUpgrade) {
    let stream = match upgrade.await {
        Ok(stream) => TokioIo::new(stream),
        Err(error) => {
            tracing::debug!(%error, "a socket was not opened");
            return;
        }
    };
    if web.sockets.enter(&known.sign_in).await {
        session::run(&web, &known, stream).await;
        web.sockets.leave(&known.sign_in).await;
    } else {
        session::refuse(stream, "there are too many open pages").await;
    }
}

/// The proof that the handshake was understood (RFC 6455 §4.2.2), if it is one.
fn accept(head: &Parts) -> Option<HeaderValue> {
    let headers = &head.headers;
    let key = one(headers, &SEC_WEBSOCKET_KEY)?;
    let asked = head.method == Method::GET
        && has_token(headers, &UPGRADE, "websocket")
        && has_token(headers, &CONNECTION, "upgrade")
        && one(headers, &SEC_WEBSOCKET_VERSION) == Some("13")
        && key.len() == KEY_CHARS;
    if !asked {
        return None;
    }
    let hash = digest(
        &SHA1_FOR_LEGACY_USE_ONLY,
        format!("{key}{ACCEPT_SUFFIX}").as_bytes(),
    );
    HeaderValue::from_str(&STANDARD.encode(hash)).ok()
}

fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|part| part.trim().eq_ignore_ascii_case(token))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;

    #[test]
    fn the_handshake_is_that_of_the_standard() {
        let request = |version: &str| {
            let request = Request::get("/ws")
                .header("connection", "keep-alive, Upgrade")
                .header("upgrade", "WebSocket")
                .header("sec-websocket-version", version)
                .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
            request.body(()).unwrap().into_parts().0
        };
        // The example of RFC 6455 §1.3.
        let accepted = accept(&request("13")).unwrap();
        assert_eq!(accepted, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert!(accept(&request("8")).is_none());
    }
}
