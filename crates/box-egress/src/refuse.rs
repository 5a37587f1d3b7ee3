//! How a refusal is told: a status, one word for programs, one line a person or agent can act on.

pub(crate) mod over_tls;

use box_api::egress::Reason;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use serde_json::json;

/// Carries [`Reason::slug`] on every answer that box-egress gives itself.
pub(crate) const REASON_HEADER: HeaderName = HeaderName::from_static("x-box-egress");
/// More of a host than this is not repeated; the box chose the text.
const HOST_CHARS_MAX: usize = 253;

/// Something that does not go through, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    /// As the box named it; empty where it named nothing.
    pub(crate) host: String,
    /// 0 where there is none.
    pub(crate) port: u16,
    pub(crate) reason: Reason,
    /// The entry of the policy that decided, as written.
    pub(crate) rule: Option<String>,
}

impl Refused {
    pub(crate) fn new(host: &str, port: u16, reason: Reason) -> Self {
        let host = host
            .chars()
            .filter(|c| !c.is_control())
            .take(HOST_CHARS_MAX)
            .collect();
        Self {
            host,
            port,
            reason,
            rule: None,
        }
    }

    /// Something the box sent that names no host.
    pub(crate) fn nameless(reason: Reason) -> Self {
        Self::new("", 0, reason)
    }

    #[expect(clippy::too_many_lines, reason = "a table: a line for each reason")]
    fn line(&self) -> String {
        let host = &self.host;
        match self.reason {
            Reason::NoPolicy => "this box has no network policy yet; try again shortly".into(),
            Reason::NotListed => {
                format!("host {host} is not on this box's list; the box's owner can allow it")
            }
            Reason::Denied => format!("host {host} is denied by the box's owner"),
            Reason::Port => format!("port {} of host {host} is not allowed here", self.port),
            Reason::IpLiteral => format!("{host} is an address; connect by name instead"),
            Reason::LocalName => {
                format!("{host} names the local network, which a box cannot reach")
            }
            Reason::PrivateAddress => format!("host {host} leads to an address that is not public"),
            Reason::PlainHttp => format!("host {host} is reached over https only"),
            Reason::DeniedNetwork => {
                format!("host {host} leads into a network that is denied by the box's owner")
            }
            Reason::DeniedRequest => {
                format!("this request to host {host} is not one the box's owner lets through")
            }
            Reason::AmbiguousPath => {
                format!("the path of this request to host {host} can be read in more than one way")
            }
            Reason::NotOpened => {
                format!(
                    "there are rules about requests to host {host}, and without a credential for \
                     it its requests cannot be read"
                )
            }
            Reason::Malformed => "the request is malformed".into(),
            Reason::SniMismatch | Reason::NoSni | Reason::NotTls => {
                format!("port 443 takes TLS for the host that was named: {host}")
            }
            Reason::HostMismatch => format!("the request names another host than {host}"),
            Reason::Method => "this method is not passed on".into(),
            Reason::UnknownAddress => "this address stands for no name".into(),
            Reason::ForeignCredential => {
                format!("host {host} takes only this box's own credential, as the box was given it")
            }
            Reason::ForeignPlaceholder => {
                format!("this placeholder does not belong to this box and host {host}")
            }
            Reason::GithubScope => {
                let rule = self.rule.as_deref().unwrap_or("this write is not allowed");
                rule.to_owned()
            }
            Reason::ClientTls => format!("the TLS handshake for {host} failed in the box"),
            Reason::TooManyConnections => "this box has too many connections".into(),
            Reason::TooManyQueries => "this box asks for too many names".into(),
            Reason::MapFull => "this box has learned too many names".into(),
            Reason::Budget => {
                format!(
                    "as much went to and from host {host} as this box may; its owner can allow more"
                )
            }
            Reason::Timeout if host.is_empty() => "the request did not come in time".into(),
            Reason::Timeout => format!("host {host} did not answer in time"),
            Reason::NoCa => {
                format!("host {host} cannot be reached: the deployment's CA is missing")
            }
            Reason::CredentialMissing => {
                format!("the credential for host {host} is not there; the box's owner can add it")
            }
            Reason::LoginsOff => {
                "nobody logs in inside this box; its owner can allow it: box set <box> \
                 logins=placeholder"
                    .into()
            }
            Reason::LoginUnread => format!(
                "the answer of {host} to a login could not be read, so none of it was passed on; \
                 log in again, or ask the box's owner for logins=plain"
            ),
            Reason::Dns => format!("the name {host} could not be resolved"),
            Reason::Unreachable => format!("host {host} could not be reached"),
            Reason::UpstreamTls => format!("host {host} did not prove who it is"),
            Reason::UpstreamFailed => format!("host {host} broke off"),
            Reason::UpstreamProxy => {
                format!("the proxy of this network did not connect to host {host}")
            }
        }
    }

    /// `{"type":"error","error":{"type":"box_egress","reason":…,"host":…,"message":…}}`: the shape
    /// model clients show to a person.
    fn body(&self) -> Bytes {
        let message = self.line();
        let (host, reason) = (&self.host, self.reason.slug());
        let error =
            json!({"type": "box_egress", "reason": reason, "host": host, "message": message});
        format!("{}\n", json!({"type": "error", "error": error})).into()
    }

    pub(crate) fn page(&self, door: Door) -> Response<Bytes> {
        let mut response = Response::new(self.body());
        *response.status_mut() = match (self.reason, self.host.as_str()) {
            // The box was slow, not a host.
            (Reason::Timeout, "") => StatusCode::REQUEST_TIMEOUT,
            (reason, _) => status(reason, door),
        };
        let headers = response.headers_mut();
        headers.insert(REASON_HEADER, HeaderValue::from_static(self.reason.slug()));
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }

    /// The page as it goes onto a socket that speaks HTTP/1.1 and is closed afterwards.
    pub(crate) fn wire(&self, door: Door) -> Vec<u8> {
        let page = self.page(door);
        let phrase = page.status().canonical_reason().unwrap_or("Refused");
        let head = format!(
            "HTTP/1.1 {} {phrase}\r\nx-box-egress: {}\r\ncontent-type: application/json\r\n\
             cache-control: no-store\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            page.status().as_u16(),
            self.reason.slug(),
            page.body().len(),
        );
        [head.as_bytes(), page.body()].concat()
    }
}

/// Where the refusal is heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    /// On the proxy port, where the client knows it talks to a proxy.
    Proxy,
    /// In place of the host itself. A policy then answers 451, not 403: agents read a 403 of
    /// their own host as "log in again".
    Host,
}

fn status(reason: Reason, door: Door) -> StatusCode {
    let by_policy = match door {
        Door::Proxy => StatusCode::FORBIDDEN,
        Door::Host => StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS,
    };
    match reason {
        Reason::NotListed
        | Reason::Denied
        | Reason::Port
        | Reason::IpLiteral
        | Reason::LocalName
        | Reason::PrivateAddress
        | Reason::PlainHttp
        | Reason::DeniedNetwork
        | Reason::DeniedRequest
        | Reason::NotOpened
        | Reason::UnknownAddress
        | Reason::MapFull
        | Reason::Budget => by_policy,
        Reason::ForeignCredential
        | Reason::ForeignPlaceholder
        | Reason::CredentialMissing
        | Reason::GithubScope
        | Reason::LoginsOff => StatusCode::FORBIDDEN,
        Reason::Malformed
        | Reason::AmbiguousPath
        | Reason::SniMismatch
        | Reason::NoSni
        | Reason::NotTls
        | Reason::ClientTls => StatusCode::BAD_REQUEST,
        Reason::HostMismatch => StatusCode::MISDIRECTED_REQUEST,
        Reason::Method => StatusCode::METHOD_NOT_ALLOWED,
        Reason::TooManyConnections | Reason::TooManyQueries => StatusCode::TOO_MANY_REQUESTS,
        Reason::NoPolicy | Reason::NoCa => StatusCode::SERVICE_UNAVAILABLE,
        Reason::Timeout => StatusCode::GATEWAY_TIMEOUT,
        Reason::Dns
        | Reason::Unreachable
        | Reason::UpstreamTls
        | Reason::UpstreamFailed
        | Reason::UpstreamProxy
        | Reason::LoginUnread => StatusCode::BAD_GATEWAY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_says_why_to_programs_and_to_people() {
        let refused = Refused::new("ok.test\r\nx", 443, Reason::NotListed);
        let wire = String::from_utf8(refused.wire(Door::Proxy)).unwrap();
        let (head, body) = wire.split_once("\r\n\r\n").unwrap();
        assert!(
            head.starts_with("HTTP/1.1 403 Forbidden\r\nx-box-egress: not_listed\r\n"),
            "{head}"
        );
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["error"]["reason"], "not_listed");
        assert_eq!(
            body["error"]["message"],
            "host ok.testx is not on this box's list; the box's owner can allow it"
        );
        assert_eq!(refused.page(Door::Host).status(), 451);
    }
}
