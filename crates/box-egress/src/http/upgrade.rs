//! `WebSocket`s: an `Upgrade` over HTTP/1.1 or an extended CONNECT over HTTP/2 on the box's side,
//! an `Upgrade` over HTTP/1.1 on the host's, or an extended CONNECT where it speaks HTTP/2 alone.

use super::body::Flow;
use super::headers::{clean_response, set_upgrade};
use super::relay::{Relay, outgoing};
use super::request::Kind;
use crate::intercept::scrub::FrameScrub;
use crate::refuse::Refused;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use box_api::egress::Reason;
use http::request::Parts;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version, header,
};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};
use std::io;
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy_bidirectional_with_sizes,
    split,
};

const BUFFER_BYTES: usize = 16 << 10;
const KEY_BYTES: usize = 16;
/// RFC 6455 §1.3.
const KEY_SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const KEY: HeaderName = HeaderName::from_static("sec-websocket-key");
const ACCEPT: HeaderName = HeaderName::from_static("sec-websocket-accept");
const VERSION: HeaderName = HeaderName::from_static("sec-websocket-version");
const EXTENSIONS: HeaderName = HeaderName::from_static("sec-websocket-extensions");

/// A request to change the protocol, its headers judged and cleaned.
pub(crate) struct Upgrade {
    pub(crate) kind: Kind,
    pub(crate) parts: Parts,
    pub(crate) body: Incoming,
    /// What looks for the credential in what the host says.
    pub(crate) scrub: Option<FrameScrub>,
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
        outgoing.headers_mut().remove(header::TE);
        if self.scrub.is_some() {
            // Compressed frames could not be looked into.
            outgoing.headers_mut().remove(EXTENSIONS);
        }
        *outgoing.method_mut() = Method::GET;
        set_upgrade(outgoing.headers_mut());
        if self.kind == Kind::ConnectHttp2 {
            let key = fresh_key().ok_or_else(|| site.refuse(Reason::UpstreamFailed))?;
            outgoing.headers_mut().insert(KEY, key);
            outgoing
                .headers_mut()
                .insert(VERSION, HeaderValue::from_static("13"));
        }
        let proof = proof_for(outgoing.headers()).ok_or_else(|| site.refuse(Reason::Malformed))?;
        // The client's side can be taken over once it has our answer.
        let client = hyper::upgrade::on(Request::from_parts(self.parts, self.body));
        let (mut response, room) = relay.upstream.send_alone(outgoing).await?;
        let is_http2 = response.version() == Version::HTTP_2;
        let agrees = if is_http2 {
            StatusCode::OK
        } else {
            StatusCode::SWITCHING_PROTOCOLS
        };
        if response.status() != agrees {
            return Ok(Outcome::Refused(response));
        }
        // A host that does not prove it read this request as a handshake would read what follows
        // as further requests. Over HTTP/2 it is in the stream of this request alone.
        if !is_http2 && !is_proven(response.headers(), &proof) {
            return Err(site.refuse(Reason::UpstreamFailed));
        }
        let host = hyper::upgrade::on(&mut response);
        let (busy, scrub) = (relay.busy.clone(), self.scrub);
        relay.leash.spawn(async move {
            join(client, host, scrub).await;
            drop((room, busy));
        });
        let headers = std::mem::take(response.headers_mut());
        agreed(self.kind, headers, &proof)
            .map(Outcome::Changed)
            .ok_or_else(|| site.refuse(Reason::UpstreamFailed))
    }
}

async fn join(client: OnUpgrade, host: OnUpgrade, scrub: Option<FrameScrub>) {
    let (Ok(client), Ok(host)) = tokio::join!(client, host) else {
        return;
    };
    let (mut client, mut host) = (TokioIo::new(client), TokioIo::new(host));
    // However it ends, both sides are closed by being dropped.
    if let Some(scrub) = scrub {
        drop(watched(client, host, scrub).await);
    } else {
        let (there, back) = (BUFFER_BYTES, BUFFER_BYTES);
        drop(copy_bidirectional_with_sizes(&mut client, &mut host, there, back).await);
    }
}

/// Passes both sides on to each other, what the host says without the credential.
async fn watched<C, H>(client: C, host: H, mut scrub: FrameScrub) -> io::Result<()>
where
    C: AsyncRead + AsyncWrite,
    H: AsyncRead + AsyncWrite,
{
    let (mut from_client, mut to_client) = split(client);
    let (mut from_host, mut to_host) = split(host);
    let there = async {
        let mut piece = vec![0; BUFFER_BYTES];
        loop {
            let bytes = from_client.read(&mut piece).await?;
            if bytes == 0 {
                return to_host.shutdown().await;
            }
            to_host.write_all(&piece[..bytes]).await?;
            to_host.flush().await?;
        }
    };
    let back = async {
        let mut piece = vec![0; BUFFER_BYTES];
        loop {
            let bytes = from_host.read(&mut piece).await?;
            let passed = match bytes {
                0 => scrub.finish(),
                _ => scrub
                    .pass(&piece[..bytes])
                    .map_err(|_| io::ErrorKind::InvalidData)?,
            };
            to_client.write_all(&passed).await?;
            to_client.flush().await?;
            if bytes == 0 {
                return to_client.shutdown().await;
            }
        }
    };
    tokio::try_join!(there, back).map(drop)
}

fn agreed(kind: Kind, mut headers: HeaderMap, proof: &str) -> Option<Response<Flow>> {
    clean_response(&mut headers);
    let mut response = Response::new(Flow::empty());
    if kind == Kind::ConnectHttp2 {
        headers.remove(ACCEPT);
    } else {
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        headers.insert(ACCEPT, HeaderValue::from_str(proof).ok()?);
        set_upgrade(&mut headers);
    }
    *response.headers_mut() = headers;
    Some(response)
}

/// What a host answers a handshake with, if it is one: a single key of sixteen bytes (RFC 6455
/// §4.2.1, §4.2.2).
fn proof_for(headers: &HeaderMap) -> Option<String> {
    let mut keys = headers.get_all(KEY).iter();
    let (key, None) = (keys.next()?, keys.next()) else {
        return None;
    };
    let bytes = STANDARD.decode(key).ok()?;
    let mut hash = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    hash.update(key.as_bytes());
    hash.update(KEY_SUFFIX);
    (bytes.len() == KEY_BYTES).then(|| STANDARD.encode(hash.finish()))
}

fn is_proven(headers: &HeaderMap, proof: &str) -> bool {
    let mut values = headers.get_all(ACCEPT).iter();
    let upgrade = headers.get(header::UPGRADE);
    values.next().is_some_and(|value| value == proof)
        && values.next().is_none()
        && upgrade.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// Sixteen random bytes (RFC 6455 §4.1).
fn fresh_key() -> Option<HeaderValue> {
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes).ok()?;
    HeaderValue::from_str(&STANDARD.encode(bytes)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handshake_has_one_key_and_one_proof() {
        let mut headers = HeaderMap::new();
        // The example of RFC 6455 §1.3.
        headers.insert(KEY, HeaderValue::from_static("dGhlIHNhbXBsZSBub25jZQ=="));
        let proof = proof_for(&headers).unwrap();
        assert_eq!(proof, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        let answer = |upgrade: &'static str, accept: &str| {
            HeaderMap::from_iter([
                (header::UPGRADE, HeaderValue::from_static(upgrade)),
                (ACCEPT, accept.parse().unwrap()),
            ])
        };
        assert!(is_proven(&answer("WebSocket", &proof), &proof));
        assert!(!is_proven(&answer("h2c", &proof), &proof));
        assert!(!is_proven(&answer("websocket", "YWNjZXB0"), &proof));
        headers.append(KEY, HeaderValue::from_static("dGhlIHNhbXBsZSBub25jZQ=="));
        assert_eq!(proof_for(&headers), None, "two keys");
        headers.insert(KEY, HeaderValue::from_static("a2V5"));
        assert_eq!(proof_for(&headers), None, "a short one");
    }
}
