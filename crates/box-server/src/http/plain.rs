//! `GET /plain/{thread}`: a thread as a plain document, without any script: for readers of screens,
//! for paper, for browsers that run none.
//!
//! A document cannot show the secret that stands beside the cookie (`x-box-proof`). So a page that
//! is signed in asks first (`POST /api/threads/{thread}/plain`), and gets a cookie that is sent to
//! this one document only, reads and does nothing else, for an hour, and not past its sign-in.

mod html;

use super::answer::{self, Answer};
use super::call::{Call, Called, thread_of};
use super::guard::Passed;
use super::{Web, gate, journal};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use box_api::{Problem, ThreadId};
use box_core::caller::Caller;
use box_core::sign_ins;
use hyper::StatusCode;
use hyper::header::{HeaderValue, SET_COOKIE};
use hyper::http::request::Parts;
use ring::digest::{SHA256, digest};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::Mutex;
use zeroize::Zeroizing;

const PREFIX: &str = "/plain/";
const LIFE_MS: i64 = 60 * 60_000;
/// The same in seconds, as the cookie has it.
const LIFE_S: i64 = LIFE_MS / 1000;
/// Documents that may be read at once, of all browsers; the one that ends first goes first.
const READERS_MAX: usize = 256;
const SECRET_BYTES: usize = 32;

/// Who may read which document.
#[derive(Debug, Default)]
pub(super) struct Readers(Mutex<HashMap<Vec<u8>, Reader>>);

#[derive(Debug, Clone)]
struct Reader {
    sign_in: String,
    caller: Caller,
    thread: ThreadId,
    /// The name and port it was given at.
    at: String,
    ends_at_ms: i64,
}

pub(super) fn is_at(path: &str) -> bool {
    path.starts_with(PREFIX)
}

/// Lets the browser that asks read the thread as a document.
pub(super) async fn allow(call: Call) -> Called {
    let (handle, _) = call.thread_named().await?;
    let host = call.host();
    let bytes = Zeroizing::new(host.random.bytes::<SECRET_BYTES>());
    let secret = Zeroizing::new(URL_SAFE_NO_PAD.encode(*bytes));
    let now_ms = host.now_ms();
    let reader = Reader {
        sign_in: call.sign_in.clone(),
        caller: call.caller,
        thread: handle.thread(),
        at: call.at.clone(),
        ends_at_ms: now_ms + LIFE_MS,
    };
    call.web.plain.admit(&secret, reader, now_ms).await;
    let cookie = Zeroizing::new(format!(
        "{}={}; Path={PREFIX}{}; HttpOnly; SameSite=Strict; Max-Age={LIFE_S}",
        cookie_name(&call.web),
        *secret,
        handle.thread()
    ));
    let mut done = answer::empty(StatusCode::NO_CONTENT);
    if let Ok(mut value) = HeaderValue::from_str(&cookie) {
        value.set_sensitive(true);
        done.headers_mut().insert(SET_COOKIE, value);
    }
    Ok(done)
}

fn cookie_name(web: &Web) -> String {
    format!("box_plain_{}", web.guard.port())
}

impl Readers {
    async fn admit(&self, secret: &str, reader: Reader, now_ms: i64) {
        let mut readers = self.0.lock().await;
        readers.retain(|_, one| one.ends_at_ms > now_ms);
        if readers.len() >= READERS_MAX {
            let first = readers.iter().min_by_key(|(_, one)| one.ends_at_ms);
            if let Some(key) = first.map(|(key, _)| key.clone()) {
                readers.remove(&key);
            }
        }
        readers.insert(key(secret), reader);
    }

    async fn find(&self, secret: &str) -> Option<Reader> {
        self.0.lock().await.get(&key(secret)).cloned()
    }
}

fn key(secret: &str) -> Vec<u8> {
    digest(&SHA256, secret.as_bytes()).as_ref().to_vec()
}

pub(super) async fn handle(web: &Arc<Web>, passed: &Passed, head: &Parts) -> Answer {
    let Some(reader) = reader(web, passed, head).await else {
        return document(StatusCode::UNAUTHORIZED, html::closed());
    };
    match read(web, &reader, head).await {
        Ok(text) => document(StatusCode::OK, text),
        Err(problem) => document(answer::status_of(&problem), html::problem(&problem)),
    }
}

/// Who asks, if they may still read this.
async fn reader(web: &Web, passed: &Passed, head: &Parts) -> Option<Reader> {
    let secret = gate::cookie(&head.headers, &cookie_name(web))?;
    let reader = web.plain.find(secret).await?;
    let host = &web.door.host;
    let fits = reader.ends_at_ms > host.now_ms()
        && reader.at == passed.host
        && head.uri.path().strip_prefix(PREFIX) == Some(reader.thread.as_str());
    let stands = matches!(sign_ins::stands(host, &reader.sign_in).await, Ok(true));
    (fits && stands).then_some(reader)
}

async fn read(web: &Arc<Web>, reader: &Reader, head: &Parts) -> Result<String, Problem> {
    let (handle, record) = thread_of(&web.door.host, &reader.caller, reader.thread).await?;
    let thread = journal::head(web, reader.caller, reader.thread).await?;
    let before = head.uri.query().and_then(before);
    let tail = journal::tail(&web.door.host, journal::place(&handle), before).await?;
    Ok(html::thread(&record.name, &thread, &tail))
}

/// `before=` of a query: where the page before this one ends.
fn before(query: &str) -> Option<u64> {
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    let (_, value) = pairs.find(|(name, _)| name == "before")?;
    value.parse().ok()
}

fn document(status: StatusCode, text: String) -> Answer {
    answer::of(status, "text/html; charset=utf-8", text)
}
