//! Logins made inside a box (decision D1). A vendor's token endpoint answers; the tokens stay here,
//! and the box gets placeholders of the same shape that are worth something in that box alone.
//!
//! | | |
//! | --- | --- |
//! | [`kinds`] | the vendors: endpoints, fields, hosts; data |
//! | [`request`] | what the box sends to a token endpoint: placeholders become tokens |
//! | [`answer`] | what comes back: tokens become placeholders, what cannot be read is refused |
//! | [`shape`] | how a placeholder looks |
//! | [`judge`] | what other requests to such a host carry |
//! | [`book`], [`desk`] | the logins of a box, and the way connections have to them |
//! | [`seal`] | logins as they lie with the host |

mod answer;
pub(crate) mod book;
pub(crate) mod desk;
mod form;
pub(crate) mod judge;
pub(crate) mod kinds;
mod request;
pub(crate) mod seal;
mod shape;

use super::grant::Grant;
use super::scrub::scrub_headers;
use super::verdict::Offence;
use crate::clock;
use crate::context::BoxContext;
use crate::http::body::Flow;
use crate::http::headers::clean_response;
use crate::http::relay::outgoing;
use crate::http::upstream::Upstream;
use crate::refuse::{Door, Refused};
use answer::{ANSWER_BYTES_MAX, Fields, Unread};
use book::Token;
use box_api::BoxId;
use box_api::egress::{Event, Reason};
use bytes::{Bytes, BytesMut};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Response, StatusCode};
use hyper::body::{Body as _, Incoming};
use kinds::{Endpoint, Kind, Role};
use std::pin::Pin;
use std::time::Duration;
use tokio::time::timeout;

/// Longest request to a token endpoint.
const REQUEST_BYTES_MAX: usize = 64 << 10;
/// Time for the whole of a request's or an answer's body.
const BODY_WAIT: Duration = Duration::from_mins(1);
/// Tokens of one answer.
const MINTED_MAX: usize = 16;

/// Headers of an answer that go to the box; another could be a token.
const KEPT_HEADERS: [HeaderName; 12] = [
    header::CACHE_CONTROL,
    header::CONTENT_TYPE,
    header::DATE,
    header::EXPIRES,
    header::PRAGMA,
    header::RETRY_AFTER,
    header::SERVER,
    header::VARY,
    header::WWW_AUTHENTICATE,
    HeaderName::from_static("cf-ray"),
    HeaderName::from_static("request-id"),
    HeaderName::from_static("x-request-id"),
];

/// Headers of a request that would make the answer another one than the whole of it.
const DROPPED_HEADERS: [HeaderName; 7] = [
    header::ACCEPT_ENCODING,
    header::CONTENT_LENGTH,
    header::IF_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_NONE_MATCH,
    header::IF_RANGE,
    header::RANGE,
];

/// A request to a token endpoint, its headers judged and cleaned.
pub(crate) struct Exchange<'a> {
    pub(crate) ctx: &'a BoxContext,
    pub(crate) upstream: &'a Upstream,
    pub(crate) kind: &'static Kind,
    pub(crate) endpoint: &'static Endpoint,
}

impl Exchange<'_> {
    /// Asks the vendor and hands back what the box may have of the answer.
    pub(crate) async fn run(
        self,
        mut parts: Parts,
        body: Incoming,
    ) -> Result<Response<Flow>, Exchanged> {
        let body = self
            .whole(body, REQUEST_BYTES_MAX, Reason::Malformed)
            .await?;
        let tokens = self.ctx.logins.tokens(self.kind);
        let owner_of = |text: &str| self.ctx.owner_of(text);
        let fields = self.endpoint.sends;
        request::check_query(parts.uri.query().unwrap_or_default()).map_err(Exchanged::Offence)?;
        let swapped = request::swapped(&parts.headers, &body, fields, (&tokens, &owner_of));
        let body = swapped
            .map_err(Exchanged::Offence)?
            .map_or(body, Bytes::from);
        for name in &DROPPED_HEADERS {
            parts.headers.remove(name);
        }
        let identity = HeaderValue::from_static("identity");
        parts.headers.insert(header::ACCEPT_ENCODING, identity);
        let flow = if body.is_empty() {
            Flow::empty()
        } else {
            Flow::page(body)
        };
        let response = self.upstream.send(outgoing(&mut parts, flow)).await?;
        self.hand_back(response, tokens).await
    }

    async fn hand_back(
        &self,
        response: Response<Incoming>,
        known: Vec<Token>,
    ) -> Result<Response<Flow>, Exchanged> {
        let (mut parts, body) = response.into_parts();
        let status = parts.status;
        let body = self
            .whole(body, ANSWER_BYTES_MAX, Reason::LoginUnread)
            .await?;
        let is_whole = !status.is_informational()
            && !status.is_redirection()
            && status != StatusCode::PARTIAL_CONTENT;
        let read = answer::unpacked(&parts.headers, &body);
        let read = read.and_then(|text| answer::read(&parts.headers, &text));
        let mut fields = match read {
            Ok(fields) if is_whole => fields,
            Ok(_) | Err(Unread) => return Ok(self.unread(status)),
        };
        let Ok(minted) = self.disguise(&mut fields, &known) else {
            return Ok(self.unread(status));
        };
        let all: Vec<Token> = known.into_iter().chain(minted.iter().cloned()).collect();
        if !minted.is_empty() {
            self.remember(minted)?;
        }
        clean_response(&mut parts.headers);
        let headers = kept(&parts.headers, &all);
        let text = without(fields.written(), &all);
        let mut response = Response::new(Flow::page(text.into()));
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Ok(response)
    }

    /// Placeholders for the tokens of an answer; a token that is known keeps the one it has.
    fn disguise(&self, fields: &mut Fields, known: &[Token]) -> Result<Vec<Token>, Unread> {
        let mut minted: Vec<Token> = Vec::new();
        let mut mint = |role: Role, secret: &str| {
            let all = known.iter().chain(&minted);
            let mut same = all.filter(|token| token.secret() == secret.as_bytes());
            if let Some(token) = same.next() {
                return Ok(token.placeholder.clone());
            }
            // What the box has already is its own placeholder, come back in a complaint.
            if self.ctx.owner_of(secret) == Some(self.ctx.id) {
                return Ok(secret.to_owned());
            }
            if minted.len() == MINTED_MAX {
                return Err(Unread);
            }
            let placeholder = shape::placeholder(secret, self.kind).ok_or(Unread)?;
            let token = Token::new(self.kind, role, placeholder.clone(), secret.as_bytes());
            minted.push(token);
            Ok(placeholder)
        };
        answer::disguise(fields, self.endpoint, &mut mint)?;
        Ok(minted)
    }

    fn remember(&self, tokens: Vec<Token>) -> Result<(), Exchanged> {
        let learned = self.ctx.logins.learn(self.kind, tokens, clock::now_ms());
        let Some(login) = learned else {
            return Err(self.upstream.site().refuse(Reason::NoPolicy).into());
        };
        let box_id = self.ctx.id;
        self.ctx.tell_to_keep(Event::LoggedIn { box_id, login });
        Ok(())
    }

    /// An answer nothing of which is passed on but that it failed.
    fn unread(&self, status: StatusCode) -> Response<Flow> {
        let refused = self.upstream.site().refuse(Reason::LoginUnread);
        self.ctx.note(&refused);
        let mut page = refused.page(Door::Host).map(Flow::page);
        if status.is_client_error() || status.is_server_error() {
            *page.status_mut() = status;
        }
        page
    }

    async fn whole(
        &self,
        body: Incoming,
        bytes_max: usize,
        too_long: Reason,
    ) -> Result<Bytes, Refused> {
        let read = collected(body, bytes_max, too_long);
        let read = timeout(BODY_WAIT, read)
            .await
            .unwrap_or(Err(Reason::Timeout));
        read.map_err(|reason| self.upstream.site().refuse(reason))
    }
}

async fn collected(
    mut body: Incoming,
    bytes_max: usize,
    too_long: Reason,
) -> Result<Bytes, Reason> {
    let mut all = BytesMut::new();
    loop {
        let frame = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await;
        let Some(frame) = frame else {
            return Ok(all.freeze());
        };
        let frame = frame.map_err(|_| Reason::UpstreamFailed)?;
        all.extend_from_slice(&frame.into_data().unwrap_or_default());
        if all.len() > bytes_max {
            return Err(too_long);
        }
    }
}

/// Whose placeholder a text is, if it is one.
pub(crate) type OwnerOf<'a> = &'a dyn Fn(&str) -> Option<BoxId>;

/// Why an exchange came to nothing.
pub(crate) enum Exchanged {
    Refused(Refused),
    Offence(Offence),
}

impl From<Refused> for Exchanged {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

fn kept(headers: &HeaderMap, tokens: &[Token]) -> HeaderMap {
    let mut kept = HeaderMap::new();
    for name in &KEPT_HEADERS {
        for value in headers.get_all(name) {
            kept.append(name, value.clone());
        }
    }
    let grants: Vec<Grant> = tokens.iter().map(grant).collect();
    scrub_headers(&mut kept, &grants);
    kept
}

fn grant(token: &Token) -> Grant {
    Grant {
        placeholder: token.placeholder.clone(),
        credential: Some(token.credential.clone()),
    }
}

/// A text in which no token stands, wherever the vendor repeated one.
fn without(text: Vec<u8>, tokens: &[Token]) -> Vec<u8> {
    let mut text = text;
    for token in tokens.iter().filter(|token| !token.secret().is_empty()) {
        if memchr::memmem::find(&text, token.secret()).is_some() {
            let whole = String::from_utf8_lossy(&text).into_owned();
            let secret = String::from_utf8_lossy(token.secret()).into_owned();
            text = whole.replace(&secret, &token.placeholder).into_bytes();
        }
    }
    text
}
