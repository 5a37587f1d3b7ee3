//! Who may speak to the page at all: only pages that came from here, under names that lead here.
//!
//! Every web page a person opens can make their browser send requests to loopback. It cannot
//! choose `Host` (which names what was resolved, so DNS rebinding shows) nor `Origin`, which says
//! what page asks. `Sec-Fetch-Site` says it for requests that carry no `Origin`.

use box_core::settings::page::PageSettings;
use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderName, ORIGIN, SEC_WEBSOCKET_PROTOCOL};
use hyper::http::request::Parts;
use hyper::{Method, header};
use std::net::{IpAddr, SocketAddr};

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// What is let through.
#[derive(Debug)]
pub(super) struct Guard {
    port: u16,
    outside: Vec<String>,
    proxies: Vec<IpAddr>,
}

/// What a request that may go on was found to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Passed {
    /// The name and port it came to, in lower case; without the port where it is that of https.
    pub(super) host: String,
    /// It came to a proxy over TLS: the cookie need never go without.
    pub(super) secure: bool,
    /// Who is to be counted for it.
    pub(super) peer: IpAddr,
}

/// Why a request goes no further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stopped {
    /// The name it was sent to is not ours.
    Host(String),
    /// It comes from elsewhere, or does not say from where.
    Origin,
}

impl Guard {
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn new(settings: &PageSettings, port: u16) -> Self {
        Self {
            port,
            outside: settings.hosts.value.clone(),
            proxies: settings.proxies.value.clone(),
        }
    }

    /// Judges a request by its head, the address it came to and the one it came from.
    pub(super) fn judge(
        &self,
        (local, peer): (SocketAddr, SocketAddr),
        head: &Parts,
    ) -> Result<Passed, Stopped> {
        let via = if self.proxies.contains(&peer.ip()) {
            Via::Proxy
        } else {
            Via::Nobody
        };
        let host = host_of(head, via);
        if !self.is_ours(&host, local) {
            return Err(Stopped::Host(host));
        }
        let scheme = match (via, one(&head.headers, &FORWARDED_PROTO)) {
            (Via::Proxy, Some("https")) => Scheme::Https,
            (Via::Proxy | Via::Nobody, _) => Scheme::Http,
        };
        let passed = Passed {
            host: host.strip_suffix(":443").unwrap_or(&host).to_owned(),
            secure: scheme == Scheme::Https,
            peer: client(&head.headers, peer.ip(), via),
        };
        let from_here = match head.headers.get_all(ORIGIN).iter().count() {
            0 => may_lack_origin(head) || is_program(head),
            1 => {
                one(&head.headers, &ORIGIN).is_some_and(|origin| self.is_own(origin, &host, scheme))
            }
            _ => false,
        };
        if from_here {
            Ok(passed)
        } else {
            Err(Stopped::Origin)
        }
    }

    fn is_ours(&self, host: &str, local: SocketAddr) -> bool {
        let port = self.port;
        host == format!("localhost:{port}")
            || host == SocketAddr::new(local.ip(), port).to_string()
            || (local.ip().is_loopback()
                && [format!("127.0.0.1:{port}"), format!("[::1]:{port}")]
                    .contains(&host.to_owned()))
            || self.is_outside(host)
    }

    fn is_outside(&self, host: &str) -> bool {
        let plain = host.strip_suffix(":443").unwrap_or(host);
        self.outside
            .iter()
            .any(|name| name == plain || name == host)
    }

    /// Whether `origin` is the page that was asked for under the name `host`.
    fn is_own(&self, origin: &str, host: &str, scheme: Scheme) -> bool {
        let origin = origin.to_ascii_lowercase();
        let tls = origin.strip_prefix("https://");
        let plain = origin.strip_prefix("http://");
        if self.is_outside(host) {
            // The proxy before it may not say how it was reached.
            let named = match scheme {
                Scheme::Https => tls,
                Scheme::Http => tls.or(plain),
            };
            return named == Some(host) || named == host.strip_suffix(":443");
        }
        match scheme {
            Scheme::Https => tls == Some(host),
            Scheme::Http => plain == Some(host),
        }
    }
}

/// Whether a request came through a proxy whose words count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Via {
    Nobody,
    Proxy,
}

/// How the browser reached what it asks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
}

/// The name the page was asked for under; empty when it does not say one.
fn host_of(head: &Parts, via: Via) -> String {
    let headers = &head.headers;
    let forwarded = one(headers, &FORWARDED_HOST).filter(|_| via == Via::Proxy);
    let authority = head
        .uri
        .authority()
        .map(hyper::http::uri::Authority::as_str);
    let named = match (headers.get_all(HOST).iter().count(), authority) {
        (0, Some(authority)) => Some(authority),
        // Of both, the same must be said.
        (1, Some(authority)) => one(headers, &HOST).filter(|host| *host == authority),
        (1, None) => one(headers, &HOST),
        _ => None,
    };
    let host = forwarded.or(named).unwrap_or_default();
    host.to_ascii_lowercase()
}

/// Without `Origin` only what changes nothing, and no browser says it is for another page.
fn may_lack_origin(head: &Parts) -> bool {
    let reads = head.method == Method::GET || head.method == Method::HEAD;
    let own_site = match one(&head.headers, &FETCH_SITE) {
        None if head.headers.contains_key(FETCH_SITE) => false,
        None | Some("same-origin" | "none") => true,
        // A link on another page may lead to ours; what ours then asks has its own origin.
        Some(_) => !is_inner(head.uri.path()),
    };
    reads && !is_upgrade(&head.headers) && own_site
}

/// A program shows a token, which no page of another origin can make a browser show; and its cookie,
/// if it has one, is not looked at.
fn is_program(head: &Parts) -> bool {
    token(&head.headers).is_some() || is_acp(head.uri.path())
}

/// The WebSocket of an ACP client, where only tokens count.
pub(super) fn is_acp(path: &str) -> bool {
    path.strip_prefix("/api/boxes/")
        .and_then(|rest| rest.split_once('/'))
        .is_some_and(|(_, last)| last == "acp")
}

/// The token of a program, as it has it. Programs that cannot set a header of a WebSocket show it
/// as one of its protocols.
pub(super) fn token(headers: &HeaderMap) -> Option<&str> {
    if headers.contains_key(AUTHORIZATION) {
        let shown = one(headers, &AUTHORIZATION).unwrap_or_default();
        let (scheme, token) = shown.split_once(' ').unwrap_or_default();
        let token = token.trim_start();
        return Some(if scheme.eq_ignore_ascii_case("bearer") {
            token
        } else {
            ""
        });
    }
    let protocols = one(headers, &SEC_WEBSOCKET_PROTOCOL)?.split(',');
    protocols
        .map(str::trim)
        .find_map(|protocol| protocol.strip_prefix("bearer."))
}

/// What only our own page may ask for.
fn is_inner(path: &str) -> bool {
    ["/api", "/ws", "/metrics"].iter().any(|inner| {
        path.strip_prefix(inner)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

pub(super) fn is_upgrade(headers: &HeaderMap) -> bool {
    headers.contains_key(header::UPGRADE)
}

/// The value of a header that is there once.
pub(super) fn one<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok().map(str::trim),
        _ => None,
    }
}

/// Who asks: for a proxy the last address it adds, which it alone wrote.
fn client(headers: &HeaderMap, peer: IpAddr, via: Via) -> IpAddr {
    let last = headers.get_all(FORWARDED_FOR).iter().next_back();
    let named = last
        .and_then(|value| value.to_str().ok())
        .and_then(|list| list.rsplit(',').next())
        .and_then(|address| address.trim().parse().ok());
    named.filter(|_| via == Via::Proxy).unwrap_or(peer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use box_core::settings::Settings;
    use hyper::Request;
    use std::path::Path;

    fn guard(settings: &str) -> Guard {
        let settings = Settings::parse(Path::new("config.toml"), settings).unwrap();
        Guard::new(&settings.page, 2697)
    }

    fn judge(
        guard: &Guard,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Result<Passed, Stopped> {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        let ends = (
            "127.0.0.1:2697".parse().unwrap(),
            "127.0.0.1:50000".parse().unwrap(),
        );
        guard.judge(ends, &head)
    }

    #[test]
    fn only_names_of_this_host_are_answered() {
        let guard = guard("");
        for ours in [
            "localhost:2697",
            "127.0.0.1:2697",
            "[::1]:2697",
            "LOCALHOST:2697",
        ] {
            assert!(
                judge(&guard, "GET", "/", &[("host", ours)]).is_ok(),
                "{ours}"
            );
        }
        for other in [
            "",
            "localhost",
            "localhost:80",
            "evil.example:2697",
            "127.0.0.1.evil.example:2697",
            "localhost:2697.evil.example",
        ] {
            let stopped = judge(&guard, "GET", "/", &[("host", other)]);
            assert_eq!(stopped, Err(Stopped::Host(other.to_owned())));
        }
        let twice = [("host", "localhost:2697"), ("host", "evil.example")];
        assert!(judge(&guard, "GET", "/", &twice).is_err());
        let nobody = [
            ("host", "evil.example"),
            ("x-forwarded-host", "localhost:2697"),
        ];
        assert!(
            judge(&guard, "GET", "/", &nobody).is_err(),
            "no proxy is trusted"
        );
    }

    #[test]
    fn only_our_own_page_may_change_anything() {
        let guard = guard("");
        let host = ("host", "localhost:2697");
        let own = ("origin", "http://localhost:2697");
        assert!(judge(&guard, "POST", "/api/boxes", &[host, own]).is_ok());
        assert_eq!(
            judge(&guard, "POST", "/api/boxes", &[host]),
            Err(Stopped::Origin)
        );
        for foreign in [
            "null",
            "http://localhost:3000",
            "https://localhost:2697",
            "http://127.0.0.1:2697",
            "http://evil.example",
            "",
        ] {
            let stopped = judge(&guard, "POST", "/api/boxes", &[host, ("origin", foreign)]);
            assert_eq!(stopped, Err(Stopped::Origin), "{foreign}");
            let stopped = judge(&guard, "GET", "/api/boxes", &[host, ("origin", foreign)]);
            assert_eq!(stopped, Err(Stopped::Origin), "{foreign}");
        }
    }

    #[test]
    fn what_reads_comes_from_our_page_or_from_none() {
        let guard = guard("");
        let host = ("host", "localhost:2697");
        let site =
            |path: &str, site: &str| judge(&guard, "GET", path, &[host, ("sec-fetch-site", site)]);
        for fine in ["same-origin", "none"] {
            assert!(site("/api/boxes", fine).is_ok(), "{fine}");
        }
        for foreign in ["same-site", "cross-site"] {
            assert_eq!(
                site("/api/boxes", foreign),
                Err(Stopped::Origin),
                "{foreign}"
            );
            assert!(site("/t/abc", foreign).is_ok(), "a link to our page");
        }
        let upgrade = [host, ("upgrade", "websocket")];
        assert_eq!(judge(&guard, "GET", "/ws", &upgrade), Err(Stopped::Origin));
        let own = [
            host,
            ("upgrade", "websocket"),
            ("origin", "http://localhost:2697"),
        ];
        assert!(judge(&guard, "GET", "/ws", &own).is_ok());
    }

    #[test]
    fn a_program_has_no_origin_and_a_page_of_another_one_cannot_pose_as_one() {
        let guard = guard("");
        let host = ("host", "localhost:2697");
        let token = ("authorization", "Bearer box_token_x");
        assert!(judge(&guard, "POST", "/api/boxes", &[host, token]).is_ok());
        let foreign = [host, token, ("origin", "http://evil.example")];
        assert_eq!(
            judge(&guard, "POST", "/api/boxes", &foreign),
            Err(Stopped::Origin)
        );
        let socket = [
            host,
            ("upgrade", "websocket"),
            ("sec-websocket-protocol", "acp.v1, bearer.box_token_x"),
        ];
        assert!(judge(&guard, "GET", "/api/boxes/web/acp", &socket).is_ok());
        let mut foreign = socket.to_vec();
        foreign.push(("origin", "http://evil.example"));
        assert_eq!(
            judge(&guard, "GET", "/api/boxes/web/acp", &foreign),
            Err(Stopped::Origin)
        );
    }

    #[test]
    fn a_trusted_proxy_says_how_it_was_reached() {
        let guard = guard("[page]\nhosts = [\"boxes.example.org\"]\nproxies = [\"127.0.0.1\"]");
        let outside = [
            ("host", "127.0.0.1:2697"),
            ("x-forwarded-host", "boxes.example.org"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-for", "192.0.2.1, 198.51.100.7"),
            ("origin", "https://boxes.example.org"),
        ];
        let passed = judge(&guard, "POST", "/api/boxes", &outside).unwrap();
        assert!(passed.secure);
        assert_eq!(passed.peer, "198.51.100.7".parse::<IpAddr>().unwrap());
        let foreign = [
            ("host", "boxes.example.org"),
            ("origin", "https://evil.example"),
        ];
        assert_eq!(
            judge(&guard, "POST", "/api/boxes", &foreign),
            Err(Stopped::Origin)
        );
        let named = [
            ("host", "boxes.example.org"),
            ("origin", "https://boxes.example.org"),
        ];
        assert!(judge(&guard, "POST", "/api/boxes", &named).is_ok());
    }
}
