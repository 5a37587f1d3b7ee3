//! Passes one request on and its answer back. The same for port 80 and for opened-up TLS; only
//! the latter knows credentials.

use super::body::{Flow, drain};
use super::headers::{clean_request, clean_response, clean_trailers};
use super::request::{Kind, Site, check, has_disguised_credential};
use super::upgrade;
use super::upstream::Upstream;
use crate::clock;
use crate::context::BoxContext;
use crate::intercept::grant::Grant;
use crate::intercept::login::desk::Judged;
use crate::intercept::login::judge::judge_logins;
use crate::intercept::login::kinds::{Endpoint, Kind as Vendor};
use crate::intercept::login::{Exchange, Exchanged};
use crate::intercept::scope::{self, Place, issuing};
use crate::intercept::scrub::{FrameScrub, Scrub, ask_for_readable, scrub_headers};
use crate::intercept::verdict::{Offence, Swap, judge};
use crate::refuse::{Door, Refused};
use crate::signals::placeholder_in;
use crate::usage::Meter;
use box_api::egress::traffic::SignalKind;
use box_api::egress::{Event, Reason};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, Version, header};
use hyper::body::Incoming;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Whether requests of this connection may carry credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Credentials {
    /// Plain HTTP to a host without one: headers pass as they are.
    NotHere,
    Judged,
}

/// One connection of a box, as seen by its requests.
pub(crate) struct Relay {
    pub(crate) ctx: Arc<BoxContext>,
    pub(crate) upstream: Upstream,
    pub(crate) credentials: Credentials,
    pub(crate) leash: super::leash::LeashEnd,
    /// Held by whatever goes on after the connection has changed its protocol.
    pub(crate) busy: mpsc::Sender<()>,
}

/// What is to be known of a request once its answer comes.
struct Asked {
    method: Method,
    meter: Option<Meter>,
}

impl Asked {
    /// Of a request for another protocol.
    fn upgrade() -> Self {
        Self {
            method: Method::GET,
            meter: None,
        }
    }
}

impl Relay {
    /// Answers a request, in any case.
    pub(crate) async fn handle(self: Arc<Self>, request: Request<Incoming>) -> Response<Flow> {
        let method = request.method().clone();
        let may_change = request.version() == Version::HTTP_11
            && request.headers().contains_key(header::UPGRADE);
        let waits = request.headers().contains_key(header::EXPECT);
        let (parts, body) = request.into_parts();
        let mut body = Some(body);
        let passed = self.pass_on(Request::from_parts(parts, ()), &mut body);
        let mut response = match passed.await {
            Ok(response) => {
                self.upstream.tally().exchanged(&method, response.status());
                response
            }
            Err(refused) => {
                self.ctx.note(&refused);
                // One that waits for `100 Continue` sends nothing, and is not to be told to.
                if let Some(unread) = body.filter(|_| !waits) {
                    drain(unread).await;
                }
                refused.page(Door::Host).map(Flow::page)
            }
        };
        // What followed such a request was not judged as requests (see `gate`).
        if may_change && response.status() != StatusCode::SWITCHING_PROTOCOLS {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
        response
    }

    /// Takes the body once nothing more stands against the request.
    async fn pass_on(
        &self,
        request: Request<()>,
        unread: &mut Option<Incoming>,
    ) -> Result<Response<Flow>, Refused> {
        let site = self.upstream.site();
        let kind = check(&request, &site)?;
        let mut grants = match self.credentials {
            Credentials::NotHere => Vec::new(),
            Credentials::Judged => self.ctx.grants(&site.host),
        };
        let (mut parts, ()) = request.into_parts();
        let mut body = || unread.take().ok_or_else(|| site.refuse(Reason::Malformed));
        if self.credentials == Credentials::Judged {
            if has_disguised_credential(&parts.headers) {
                return Err(site.refuse(Reason::ForeignCredential));
            }
            self.ctx.judge_request(&mut parts, &site)?;
            grants = self.swap(&mut parts, grants, &site)?;
            let endpoint = self.ctx.logins.endpoint(&site.host, parts.uri.path());
            if let Some(found) = endpoint.map_err(|reason| site.refuse(reason))? {
                return self.exchange(found, parts, body()?).await;
            }
            issuing::judge(&grants, &site, &parts)?;
        } else {
            self.look_for_placeholders(&parts, &site)?;
        }
        clean_request(&mut parts.headers);
        if kind != Kind::Plain && self.is_scoped(&site) && Place::of(&site.host).is_some() {
            return Err(scope::upgrade(&site));
        }
        let body = body()?;
        match kind {
            Kind::Plain => {
                let body = match Place::of(&site.host) {
                    Some(place) if self.is_scoped(&site) => {
                        match scope::judge(&self.ctx, &site, place, &mut parts, body).await {
                            scope::Outcome::Passes(body) => body,
                            scope::Outcome::Refused(response) => return Ok(response),
                        }
                    }
                    _ => Flow::relay(body),
                };
                let meter = self.meter(&mut parts, &grants, &site);
                let outgoing = outgoing(&mut parts, body);
                let response = self.upstream.send(outgoing).await?;
                let asked = Asked {
                    method: parts.method,
                    meter,
                };
                self.hand_back(response, grants, &site, asked)
            }
            Kind::UpgradeHttp1 | Kind::ConnectHttp2 => {
                let scrub = FrameScrub::new(&grants, self.reflection(&site));
                let upgrade = upgrade::Upgrade {
                    kind,
                    parts,
                    body,
                    scrub,
                };
                let response = upgrade.pass_on(self).await?;
                match response {
                    upgrade::Outcome::Changed(response) => {
                        Ok(self.scrubbed(response, &grants, &site))
                    }
                    upgrade::Outcome::Refused(response) => {
                        self.hand_back(response, grants, &site, Asked::upgrade())
                    }
                }
            }
        }
    }

    fn is_scoped(&self, site: &Site) -> bool {
        self.credentials == Credentials::Judged && self.ctx.is_scoped(&site.host)
    }

    /// A request to a vendor's token endpoint, whose answer is read.
    async fn exchange(
        &self,
        (kind, endpoint): (&'static Vendor, &'static Endpoint),
        mut parts: Parts,
        body: Incoming,
    ) -> Result<Response<Flow>, Refused> {
        clean_request(&mut parts.headers);
        let exchange = Exchange {
            ctx: &self.ctx,
            upstream: &self.upstream,
            kind,
            endpoint,
        };
        exchange.run(parts, body).await.map_err(|why| match why {
            Exchanged::Refused(refused) => refused,
            Exchanged::Offence(offence) => self.offended(&offence, &self.upstream.site()),
        })
    }

    /// Puts credentials in. Gives back what could come back with the answer.
    fn swap(
        &self,
        parts: &mut Parts,
        grants: Vec<Grant>,
        site: &Site,
    ) -> Result<Vec<Grant>, Refused> {
        let query = parts.uri.query().unwrap_or_default();
        let owner_of = |text: &str| self.ctx.owner_of(text);
        let judged = self.ctx.logins.judged(&site.host);
        let outcome = match judged {
            Judged::Bound => judge(&parts.headers, query, &grants, owner_of),
            Judged::LoggedIn | Judged::LoginHost => {
                judge_logins(judged, &parts.headers, query, (&grants, &owner_of))
            }
        };
        let swaps = outcome.map_err(|offence| self.offended(&offence, site))?;
        let uses_credential = swaps.query.is_some() || swaps.headers.iter().any(Swap::is_secret);
        if uses_credential {
            self.upstream.tally().uses_credential();
            ask_for_readable(&mut parts.headers);
        }
        for swap in swaps.headers {
            swap.apply(&mut parts.headers);
        }
        if let Some(query) = swaps.query {
            let uri = with_query(&parts.uri, &query);
            parts.uri = uri.ok_or_else(|| site.refuse(Reason::Malformed))?;
        }
        // A page that somebody logs in on keeps its cookies.
        let may_echo = judged == Judged::Bound || uses_credential;
        Ok(if may_echo { grants } else { Vec::new() })
    }

    fn offended(&self, offence: &Offence, site: &Site) -> Refused {
        match offence {
            Offence::ForeignCredential => site.refuse(Reason::ForeignCredential),
            Offence::CredentialMissing => site.refuse(Reason::CredentialMissing),
            Offence::ForeignPlaceholder { belongs_to } => {
                self.ctx.tell(Event::ForeignPlaceholder {
                    box_id: self.ctx.id,
                    host: site.host.clone(),
                    belongs_to: *belongs_to,
                    at_ms: clock::now_ms(),
                });
                let kind = if *belongs_to == self.ctx.id {
                    SignalKind::PlaceholderElsewhere
                } else {
                    SignalKind::PlaceholderOfAnotherBox
                };
                self.ctx.signal(kind, site.host.as_str(), 1);
                site.refuse(Reason::ForeignPlaceholder)
            }
        }
    }

    /// A placeholder belongs to hosts that are reached over TLS alone.
    fn look_for_placeholders(&self, parts: &Parts, site: &Site) -> Result<(), Refused> {
        let path = parts.uri.path_and_query().map_or("", PathAndQuery::as_str);
        let owner = placeholder_in(&parts.headers, path, |text| self.ctx.owner_of(text));
        let Some(owner) = owner else { return Ok(()) };
        let kind = if owner == self.ctx.id {
            SignalKind::PlaceholderInPlain
        } else {
            SignalKind::PlaceholderOfAnotherBox
        };
        self.ctx.signal(kind, site.host.as_str(), 1);
        Err(site.refuse(Reason::ForeignPlaceholder))
    }

    /// Where a model is asked with an account, what the answer costs is read.
    fn meter(&self, parts: &mut Parts, grants: &[Grant], site: &Site) -> Option<Meter> {
        let mut used = grants.iter().filter_map(|grant| grant.credential.as_ref());
        let kind = &used.next()?.spec.kind;
        Meter::for_request(&self.ctx, &site.host, kind, parts)
    }

    fn hand_back(
        &self,
        response: Response<Incoming>,
        grants: Vec<Grant>,
        site: &Site,
        asked: Asked,
    ) -> Result<Response<Flow>, Refused> {
        // Another protocol than HTTP was not asked for.
        if response.status().is_informational() {
            return Err(site.refuse(Reason::UpstreamFailed));
        }
        let (mut parts, body) = response.into_parts();
        // The host's own words beside the status could be the credential; hyper would repeat them.
        parts.extensions.clear();
        clean_response(&mut parts.headers);
        let tell = self.reflection(site);
        let scrub = Scrub::for_body(&grants, &parts.headers, tell);
        let changes_length = scrub.as_ref().is_some_and(|scrub| !scrub.keeps_length());
        // What an answer to HEAD announces has no body to differ from.
        if changes_length && asked.method != Method::HEAD {
            parts.headers.remove(header::CONTENT_LENGTH);
        }
        let grants: Arc<[Grant]> = grants.into();
        let behind = Arc::clone(&grants);
        let clean = Box::new(move |trailers: &mut HeaderMap| {
            clean_trailers(trailers);
            scrub_headers(trailers, &behind);
        });
        let meter = asked.meter;
        let meter = meter.and_then(|meter| meter.begins(parts.status, &parts.headers));
        let flow = Flow::hand_back(body, scrub, clean, meter);
        let response = Response::from_parts(parts, flow);
        Ok(self.scrubbed(response, &grants, site))
    }

    fn scrubbed(
        &self,
        mut response: Response<Flow>,
        grants: &[Grant],
        site: &Site,
    ) -> Response<Flow> {
        if scrub_headers(response.headers_mut(), grants) {
            (self.reflection(site))();
        }
        response
    }

    fn reflection(&self, site: &Site) -> Box<dyn Fn() + Send + Sync> {
        let (ctx, host) = (Arc::clone(&self.ctx), site.host.clone());
        Box::new(move || {
            let (box_id, host) = (ctx.id, host.clone());
            ctx.signal(SignalKind::CredentialEchoed, host.as_str(), 1);
            ctx.tell(Event::SecretReflected {
                box_id,
                host,
                at_ms: clock::now_ms(),
            });
        })
    }
}

/// A request built anew: method, path and headers, and nothing else of what came. Takes the
/// headers out of `parts`.
pub(crate) fn outgoing(parts: &mut Parts, body: Flow) -> Request<Flow> {
    let path = parts.uri.path_and_query().cloned().map(Uri::from);
    let mut request = Request::new(body);
    *request.method_mut() = parts.method.clone();
    *request.uri_mut() = path.unwrap_or_default();
    *request.headers_mut() = std::mem::take(&mut parts.headers);
    request
}

/// The same address with another query; nothing where that is none.
fn with_query(uri: &Uri, query: &str) -> Option<Uri> {
    let mut parts = uri.clone().into_parts();
    let path = uri.path();
    parts.path_and_query = Some(format!("{path}?{query}").parse().ok()?);
    Uri::from_parts(parts).ok()
}
