//! Passes one request on and its answer back. The same for port 80 and for opened-up TLS; only
//! the latter knows credentials.

use super::body::Flow;
use super::headers::{clean_request, clean_response};
use super::request::{Kind, Site, check};
use super::upgrade;
use super::upstream::Upstream;
use crate::clock;
use crate::context::BoxContext;
use crate::intercept::grant::Grant;
use crate::intercept::scrub::{Scrub, scrub_headers};
use crate::intercept::verdict::{Offence, judge};
use crate::refuse::{Door, Refused};
use box_api::egress::{Event, Reason};
use http::request::Parts;
use http::{Method, Request, Response, Uri, header};
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

impl Relay {
    /// Answers a request, in any case.
    pub(crate) async fn handle(self: Arc<Self>, request: Request<Incoming>) -> Response<Flow> {
        match self.pass_on(request).await {
            Ok(response) => response,
            Err(refused) => {
                self.ctx.note(&refused);
                refused.page(Door::Host).map(Flow::page)
            }
        }
    }

    async fn pass_on(&self, request: Request<Incoming>) -> Result<Response<Flow>, Refused> {
        let site = self.upstream.site();
        let kind = check(&request, &site)?;
        let grants = match self.credentials {
            Credentials::NotHere => Vec::new(),
            Credentials::Judged => self.ctx.grants(&site.host),
        };
        let (mut parts, body) = request.into_parts();
        if self.credentials == Credentials::Judged {
            self.swap(&mut parts, &grants, &site)?;
        }
        clean_request(&mut parts.headers);
        match kind {
            Kind::Plain => {
                let outgoing = outgoing(&mut parts, Flow::relay(body, None));
                let response = self.upstream.send(outgoing).await?;
                Ok(self.hand_back(response, &grants, &site, &parts.method))
            }
            Kind::UpgradeHttp1 | Kind::ConnectHttp2 => {
                let upgrade = upgrade::Upgrade { kind, parts, body };
                let response = upgrade.pass_on(self).await?;
                match response {
                    upgrade::Outcome::Changed(response) => {
                        Ok(self.scrubbed(response, &grants, &site))
                    }
                    upgrade::Outcome::Refused(response) => {
                        Ok(self.hand_back(response, &grants, &site, &Method::GET))
                    }
                }
            }
        }
    }

    fn swap(&self, parts: &mut Parts, grants: &[Grant], site: &Site) -> Result<(), Refused> {
        let query = parts.uri.query().unwrap_or_default();
        let owner_of = |text: &str| self.ctx.owner_of(text);
        match judge(&parts.headers, query, grants, owner_of) {
            Ok(swaps) => {
                for swap in swaps {
                    swap.apply(&mut parts.headers);
                }
                Ok(())
            }
            Err(Offence::ForeignCredential) => Err(site.refuse(Reason::ForeignCredential)),
            Err(Offence::CredentialMissing) => Err(site.refuse(Reason::CredentialMissing)),
            Err(Offence::ForeignPlaceholder { belongs_to }) => {
                self.ctx.tell(Event::ForeignPlaceholder {
                    box_id: self.ctx.id,
                    host: site.host.clone(),
                    belongs_to,
                    at_ms: clock::now_ms(),
                });
                Err(site.refuse(Reason::ForeignPlaceholder))
            }
        }
    }

    fn hand_back(
        &self,
        response: Response<Incoming>,
        grants: &[Grant],
        site: &Site,
        method: &Method,
    ) -> Response<Flow> {
        let (mut parts, body) = response.into_parts();
        // The host's own words beside the status could be the credential; hyper would repeat them.
        parts.extensions.clear();
        clean_response(&mut parts.headers);
        let tell = self.reflection(site);
        let scrub = Scrub::for_body(grants, &parts.headers, tell);
        let changes_length = scrub.as_ref().is_some_and(|scrub| !scrub.keeps_length());
        // What an answer to HEAD announces has no body to differ from.
        if changes_length && method != Method::HEAD {
            parts.headers.remove(header::CONTENT_LENGTH);
        }
        let response = Response::from_parts(parts, Flow::relay(body, scrub));
        self.scrubbed(response, grants, site)
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
