//! `WebSocket`s: an `Upgrade` over HTTP/1.1 or an extended CONNECT over HTTP/2 on the box's side,
//! always an `Upgrade` over HTTP/1.1 on the host's.

use super::body::Flow;
use super::headers::{clean_response, set_upgrade};
use super::relay::{Relay, outgoing};
use super::request::Kind;
use crate::refuse::Refused;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use box_api::egress::Reason;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional_with_sizes;

const BUFFER_BYTES: usize = 16 << 10;
const KEY: HeaderName = HeaderName::from_static("sec-websocket-key");
const ACCEPT: HeaderName = HeaderName::from_static("sec-websocket-accept");
const VERSION: HeaderName = HeaderName::from_static("sec-websocket-version");

/// A request to change the protocol, its headers judged and cleaned.
pub(crate) struct Upgrade {
    pub(crate) kind: Kind,
    pub(crate) parts: Parts,
    pub(crate) body: Incoming,
}

pub(crate) enum Outcome {
    /// Both sides speak WebSocket from here on.
    Changed(Response<Flow>),
    /// The host answered something else.
    Refused(Response<Incoming>),
}

impl Upgrade {
    pub(crate) async fn pass_on(mut self, relay: &Relay) -> Result<Outcome, Refused> {
        let site = relay.upstream.site();
        let mut outgoing = outgoing(&mut self.parts, Flow::empty());
        *outgoing.method_mut() = Method::GET;
        set_upgrade(outgoing.headers_mut());
        if self.kind == Kind::ConnectHttp2 {
            let key = fresh_key().ok_or_else(|| site.refuse(Reason::UpstreamFailed))?;
            outgoing.headers_mut().insert(KEY, key);
            outgoing
                .headers_mut()
                .insert(VERSION, HeaderValue::from_static("13"));
        }
        // The client's side can be taken over once it has our answer.
        let client = hyper::upgrade::on(Request::from_parts(self.parts, self.body));
        let (mut response, room) = relay.upstream.send_alone(outgoing).await?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Ok(Outcome::Refused(response));
        }
        let host = hyper::upgrade::on(&mut response);
        let busy = relay.busy.clone();
        relay.leash.spawn(async move {
            join(client, host).await;
            drop((room, busy));
        });
        let headers = std::mem::take(response.headers_mut());
        Ok(Outcome::Changed(agreed(self.kind, headers)))
    }
}

async fn join(client: OnUpgrade, host: OnUpgrade) {
    let (Ok(client), Ok(host)) = tokio::join!(client, host) else {
        return;
    };
    let (mut client, mut host) = (TokioIo::new(client), TokioIo::new(host));
    let copy = copy_bidirectional_with_sizes(&mut client, &mut host, BUFFER_BYTES, BUFFER_BYTES);
    // However it ends, both sides are closed by being dropped.
    drop(copy.await);
}

fn agreed(kind: Kind, mut headers: HeaderMap) -> Response<Flow> {
    clean_response(&mut headers);
    let mut response = Response::new(Flow::empty());
    if kind == Kind::ConnectHttp2 {
        headers.remove(ACCEPT);
    } else {
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        set_upgrade(&mut headers);
    }
    *response.headers_mut() = headers;
    response
}

/// Sixteen random bytes (RFC 6455 §4.1).
fn fresh_key() -> Option<HeaderValue> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    HeaderValue::from_str(&STANDARD.encode(bytes)).ok()
}
