//! A push service and the browsers behind it: strict where real ones are, and able to read what it
//! was sent, because the browsers' keys are its own.
//!
//! A subscription is a path below the service's name. What comes is judged by RFC 8030 (method,
//! `TTL`, size), RFC 8292 (the signature, for whom, until when, by whose key) and RFC 8291 (one
//! record that opens with the browser's key). What is wrong in any way is answered 400 or 401 and
//! kept with the reason.

mod curve;
mod open;

use crate::rig::{Net, World};
use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use serde_json::Value;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The most a push service takes (RFC 8030 §7.2).
const BODY_BYTES_MAX: usize = 4096;
/// RFC 8292 §2.
const SIGNED_S_MAX: u64 = 24 * 3600;

/// A browser's subscription, as its page hands it to the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    pub endpoint: String,
    pub p256dh: String,
    pub auth: String,
}

/// A message that was in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    /// Of the browser it was for.
    pub endpoint: String,
    /// As the browser reads it.
    pub text: String,
    pub ttl_s: u32,
    pub urgency: String,
    pub topic: String,
    /// Who signed, by `sub`.
    pub subject: String,
}

impl Delivered {
    /// The declarative form.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }
}

/// What a service knows.
#[derive(Debug, Default)]
pub(crate) struct PushState {
    browsers: HashMap<String, Browser>,
    /// What comes next is answered with these, one after the other.
    answers: Vec<(u16, Option<u32>)>,
    delivered: Vec<Delivered>,
    /// What was not in order.
    refused: Vec<String>,
}

#[derive(Debug, Clone)]
struct Browser {
    private: [u8; 32],
    auth: [u8; 16],
    /// The host's key it subscribed with.
    key: Vec<u8>,
    gone: bool,
}

/// A push service at a name of the rig.
#[derive(Debug, Clone)]
pub struct PushService {
    net: Net,
    name: String,
}

impl PushService {
    pub(crate) fn new(net: Net, name: &str) -> Self {
        net.origin(name);
        let name = name.to_ascii_lowercase();
        let served = name.clone();
        net.ask(move |world| world.push.entry(served).or_default().delivered.clear());
        Self { net, name }
    }

    /// Another browser subscribes, with the host's key as the host says it.
    ///
    /// # Errors
    /// When the key is none.
    pub fn subscribe(&self, key: &str) -> Result<Subscription> {
        let key = URL_SAFE_NO_PAD.decode(key).context("the host's key")?;
        anyhow::ensure!(key.len() == 65 && key.first() == Some(&4), "the host's key");
        let (mut private, mut auth, mut id) = ([0; 32], [0; 16], [0; 12]);
        for bytes in [&mut private[..], &mut auth[..], &mut id[..]] {
            let filled = SystemRandom::new().fill(bytes);
            filled.map_err(|_| anyhow::anyhow!("no random bytes"))?;
        }
        let public = curve::public(&private).context("a private key of nothing")?;
        let path = format!("/wpush/{}", URL_SAFE_NO_PAD.encode(id));
        let browser = Browser {
            private,
            auth,
            key,
            gone: false,
        };
        let subscription = Subscription {
            endpoint: format!("https://{}{path}", self.name),
            p256dh: URL_SAFE_NO_PAD.encode(public),
            auth: URL_SAFE_NO_PAD.encode(auth),
        };
        self.with(move |state| state.browsers.insert(path, browser));
        Ok(subscription)
    }

    /// The browser has given its subscription up.
    pub fn forget(&self, subscription: &Subscription) {
        let path = self.path_of(&subscription.endpoint);
        self.with(move |state| {
            if let Some(browser) = state.browsers.get_mut(&path) {
                browser.gone = true;
            }
        });
    }

    /// The next messages are answered with these (status, `Retry-After`), whatever they are.
    pub fn answer_next(&self, answers: &[(u16, Option<u32>)]) {
        let answers = answers.to_vec();
        self.with(move |state| state.answers.extend(answers));
    }

    /// Everything that was in order, oldest first.
    pub fn delivered(&self) -> Vec<Delivered> {
        self.with(|state| state.delivered.clone())
    }

    /// Why anything was refused.
    pub fn refused(&self) -> Vec<String> {
        self.with(|state| state.refused.clone())
    }

    /// Waits until so many messages were in order.
    ///
    /// # Errors
    /// When `deadline` has passed; with what was refused.
    pub fn wait_for(&self, count: usize, deadline: Duration) -> Result<Vec<Delivered>> {
        let name = self.name.clone();
        let what = format!("{count} messages at {name}");
        let found = self.net.wait_for(&what, deadline, move |world: &World| {
            let delivered = &world.push.get(&name)?.delivered;
            (delivered.len() >= count).then(|| delivered.clone())
        });
        found.with_context(|| format!("refused: {:?}", self.refused()))
    }

    fn path_of(&self, endpoint: &str) -> String {
        let own = format!("https://{}", self.name);
        endpoint.strip_prefix(&own).unwrap_or_default().to_owned()
    }

    fn with<R: Send + 'static>(&self, act: impl FnOnce(&mut PushState) -> R + Send + 'static) -> R {
        let name = self.name.clone();
        self.net
            .ask(move |world| act(world.push.entry(name).or_default()))
    }
}

/// Serves a request to a push service.
pub(crate) async fn answer(
    internet: Rc<crate::rig::internet::Internet>,
    name: &str,
    request: Request<Incoming>,
) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, BODY_BYTES_MAX + 1).collect().await;
    let body = body
        .map(http_body_util::Collected::to_bytes)
        .unwrap_or_default();
    let path = head.uri.path().to_owned();
    internet.with(|world| {
        let state = world.push.entry(name.to_owned()).or_default();
        if !state.answers.is_empty() {
            let (status, after) = state.answers.remove(0);
            return answered(status, after);
        }
        let is_post = head.method == http::Method::POST;
        let Some(browser) = state.browsers.get(&path).cloned().filter(|_| is_post) else {
            return answered(404, None);
        };
        if browser.gone {
            return answered(410, None);
        }
        match judged(name, &browser, &head.headers, &body) {
            Ok(mut delivered) => {
                delivered.endpoint = format!("https://{name}{path}");
                state.delivered.push(delivered);
                answered(201, None)
            }
            Err((status, why)) => {
                state.refused.push(why);
                answered(status, None)
            }
        }
    })
}

fn answered(status: u16, after: Option<u32>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    if let Some(after) = after {
        response
            .headers_mut()
            .insert(http::header::RETRY_AFTER, after.into());
    }
    response
}

type Refused = (u16, String);

fn judged(
    name: &str,
    browser: &Browser,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Delivered, Refused> {
    let bad = |why: &str| (400, why.to_owned());
    let subject = signed(name, browser, headers).map_err(|why| (401, why))?;
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if body.len() > BODY_BYTES_MAX {
        return Err((413, "the body is too long".to_owned()));
    }
    if text("content-encoding") != Some("aes128gcm") {
        return Err(bad("`content-encoding` is not `aes128gcm`"));
    }
    let ttl_s = text("ttl").and_then(|ttl| ttl.parse().ok());
    let urgency = text("urgency").unwrap_or("normal").to_owned();
    if !["very-low", "low", "normal", "high"].contains(&urgency.as_str()) {
        return Err(bad("`urgency` is none"));
    }
    let topic = text("topic").unwrap_or_default().to_owned();
    // RFC 8030 §5.4.
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if topic.len() > 32 || !topic.bytes().all(plain) {
        return Err(bad("`topic` is none"));
    }
    let opened = open::open(&browser.private, &browser.auth, body).map_err(|why| bad(&why))?;
    Ok(Delivered {
        endpoint: String::new(),
        text: String::from_utf8(opened).map_err(|_| bad("it is no text"))?,
        ttl_s: ttl_s.ok_or_else(|| bad("there is no `ttl`"))?,
        urgency,
        topic,
        subject,
    })
}

/// RFC 8292: who signed, or what is wrong with the signature.
fn signed(name: &str, browser: &Browser, headers: &HeaderMap) -> Result<String, String> {
    let said = headers
        .get("authorization")
        .and_then(|value| value.to_str().ok());
    let said = said.and_then(|said| said.strip_prefix("vapid "));
    let said = said.ok_or("it is not signed")?;
    let part = |key: &str| {
        said.split(',')
            .find_map(|part| part.trim().strip_prefix(key))
    };
    let token = part("t=").ok_or("there is no token")?;
    let decode = |text: &str| {
        URL_SAFE_NO_PAD
            .decode(text)
            .map_err(|_| "no base64url".to_owned())
    };
    let key = decode(part("k=").ok_or("there is no key")?)?;
    if key != browser.key {
        return Err("the browser subscribed with another key".to_owned());
    }
    let (signed, signature) = token.rsplit_once('.').ok_or("the token is none")?;
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &key)
        .verify(signed.as_bytes(), &decode(signature)?)
        .map_err(|_| "the signature is wrong".to_owned())?;
    let (head, claims) = signed.split_once('.').ok_or("the token is none")?;
    let read = |text: &str| -> Result<Value, String> {
        serde_json::from_slice(&decode(text)?).map_err(|error| error.to_string())
    };
    if read(head)?["alg"] != "ES256" {
        return Err("it is not signed by ES256".to_owned());
    }
    let claims = read(claims)?;
    if claims["aud"] != format!("https://{name}") {
        return Err(format!("it is for `{}`", claims["aud"]));
    }
    let ends_s = claims["exp"].as_u64().unwrap_or_default();
    let now_s = now_s();
    if ends_s <= now_s || ends_s > now_s + SIGNED_S_MAX {
        return Err(format!("it holds until {ends_s}, and now is {now_s}"));
    }
    let subject = claims["sub"].as_str().unwrap_or_default();
    if !subject.starts_with("mailto:") && !subject.starts_with("https:") {
        return Err(format!("`sub` is `{subject}`"));
    }
    Ok(subject.to_owned())
}

#[expect(
    clippy::disallowed_methods,
    reason = "a push service has a clock of its own"
)]
fn now_s() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
