//! Judges a request that an HTTP library read: is it for this host, and one we pass on at all.

use super::head::Authority;
use super::headers::named_by_connection;
use crate::intercept::verdict::is_credential_header;
use crate::refuse::Refused;
use box_api::egress::{HostName, Reason};
use http::{HeaderMap, HeaderName, Method, Request, Uri, Version, header};
use hyper::ext::Protocol;

/// The host and port a connection belongs to; every request on it must be for it.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    pub(crate) host: HostName,
    pub(crate) port: u16,
}

impl Site {
    pub(crate) fn refuse(&self, reason: Reason) -> Refused {
        Refused::new(self.host.as_str(), self.port, reason)
    }
}

/// What a request wants to become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A request with an answer.
    Plain,
    /// A WebSocket over HTTP/1.1: `Upgrade: websocket` (RFC 6455 §4.1).
    UpgradeHttp1,
    /// A WebSocket over HTTP/2: extended CONNECT (RFC 8441).
    ConnectHttp2,
}

/// Checks method, authority and headers.
pub(crate) fn check<B>(request: &Request<B>, site: &Site) -> Result<Kind, Refused> {
    check_authority(request, site)?;
    let headers = request.headers();
    if headers.get_all(header::CONTENT_LENGTH).iter().count() > 1
        || named_by_connection(headers)
            .iter()
            .any(is_credential_header)
        || !has_sound_path(request)
    {
        return Err(site.refuse(Reason::Malformed));
    }
    let kind = kind_of(request).ok_or_else(|| site.refuse(Reason::Method))?;
    let has_body = [header::CONTENT_LENGTH, header::TRANSFER_ENCODING]
        .iter()
        .any(|name| headers.contains_key(name));
    if kind != Kind::Plain && has_body {
        return Err(site.refuse(Reason::Malformed));
    }
    Ok(kind)
}

/// HTTP/2 takes anything for a path. What does not begin with `/` would be read as a host, or as
/// another request, on a connection that speaks HTTP/1.1.
fn has_sound_path<B>(request: &Request<B>) -> bool {
    let (method, uri) = (request.method(), request.uri());
    if method == Method::CONNECT && uri.path_and_query().is_none() {
        return true;
    }
    // As it would be written: a query alone has no path, whatever `path` says.
    let text = uri.path_and_query().map_or("/", |text| text.as_str());
    text.starts_with('/') || (method == Method::OPTIONS && text == "*")
}

/// A header that many servers take for one that logs somebody in: CGI and its heirs know no
/// difference between `_` and `-`.
pub(crate) fn has_disguised_credential(headers: &HeaderMap) -> bool {
    let mut names = headers.keys().map(HeaderName::as_str);
    names.any(|name| {
        let plain = name.contains('_').then(|| name.replace('_', "-").parse());
        matches!(plain, Some(Ok(plain)) if is_credential_header(&plain))
    })
}

fn kind_of<B>(request: &Request<B>) -> Option<Kind> {
    let method = request.method();
    if method == Method::CONNECT {
        let protocol = request.extensions().get::<Protocol>()?;
        return (protocol.as_str() == "websocket").then_some(Kind::ConnectHttp2);
    }
    if method == Method::TRACE || method.as_str() == "TRACK" {
        return None;
    }
    let wants_websocket = request
        .headers()
        .get(header::UPGRADE)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"));
    let is_upgrade = request.version() == Version::HTTP_11
        && method == Method::GET
        && wants_websocket
        && named_by_connection(request.headers()).contains(&header::UPGRADE);
    Some(if is_upgrade {
        Kind::UpgradeHttp1
    } else {
        Kind::Plain
    })
}

/// HTTP/2 names the host in `:authority`, HTTP/1.1 in `Host`; whatever else names one must agree.
fn check_authority<B>(request: &Request<B>, site: &Site) -> Result<(), Refused> {
    let malformed = || site.refuse(Reason::Malformed);
    let in_uri = request.uri().authority().map(http::uri::Authority::as_str);
    let mut in_header = request.headers().get_all(header::HOST).iter();
    let (first, second) = (in_header.next(), in_header.next());
    let first = first
        .map(|value| value.to_str().map_err(|_| malformed()))
        .transpose()?;
    let is_http2 = request.version() == Version::HTTP_2;
    let enough = if is_http2 {
        in_uri.is_some()
    } else {
        first.is_some()
    };
    if !enough || second.is_some() {
        return Err(malformed());
    }
    for text in [in_uri, first].into_iter().flatten() {
        let named = Authority::parse(text).ok_or_else(malformed)?;
        if !named.is(&site.host, site.port) {
            return Err(site.refuse(Reason::HostMismatch));
        }
    }
    if has_odd_scheme(request.uri()) {
        Err(malformed())
    } else {
        Ok(())
    }
}

fn has_odd_scheme(uri: &Uri) -> bool {
    uri.scheme_str()
        .is_some_and(|scheme| scheme != "https" && scheme != "http")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site() -> Site {
        Site {
            host: HostName::parse("cred.test").unwrap(),
            port: 443,
        }
    }

    fn outcome(request: http::request::Builder) -> Result<Kind, Reason> {
        check(&request.body(()).unwrap(), &site()).map_err(|refused| refused.reason)
    }

    #[test]
    fn request_for_the_site_passes() {
        let http1 = || Request::builder().uri("/x");
        assert_eq!(
            outcome(http1().header("host", "cred.test")),
            Ok(Kind::Plain)
        );
        assert_eq!(
            outcome(http1().header("host", "CRED.test:443")),
            Ok(Kind::Plain)
        );
        let http2 = || {
            Request::builder()
                .version(Version::HTTP_2)
                .uri("https://cred.test/x")
        };
        assert_eq!(outcome(http2()), Ok(Kind::Plain));
        assert_eq!(
            outcome(http2().header("host", "cred.test")),
            Ok(Kind::Plain)
        );
    }

    #[test]
    fn request_for_another_host_is_misdirected() {
        let http1 = || Request::builder().uri("/x");
        let mismatch = Err(Reason::HostMismatch);
        assert_eq!(outcome(http1().header("host", "evil.test")), mismatch);
        assert_eq!(outcome(http1().header("host", "cred.test:8443")), mismatch);
        let http2 = |uri| Request::builder().version(Version::HTTP_2).uri(uri);
        assert_eq!(outcome(http2("https://evil.test/")), mismatch);
        assert_eq!(
            outcome(http2("https://cred.test/").header("host", "evil.test")),
            mismatch
        );
    }

    #[test]
    fn request_without_one_clear_host_is_malformed() {
        let http1 = || Request::builder().uri("/x");
        let malformed = Err(Reason::Malformed);
        assert_eq!(outcome(http1()), malformed);
        let twice = http1()
            .header("host", "cred.test")
            .header("host", "cred.test");
        assert_eq!(outcome(twice), malformed);
        assert_eq!(
            outcome(http1().header("host", "cred.test@evil.test")),
            malformed
        );
        let http2 = Request::builder().version(Version::HTTP_2).uri("/x");
        assert_eq!(outcome(http2.header("host", "cred.test")), malformed);
        let user = Request::builder()
            .version(Version::HTTP_2)
            .uri("https://u@cred.test/");
        assert_eq!(outcome(user), malformed);
    }

    #[test]
    fn connection_header_cannot_hide_a_credential() {
        let request = || Request::builder().uri("/x").header("host", "cred.test");
        for named in ["close, Authorization", "X-Api-Key", "cookie"] {
            assert_eq!(
                outcome(request().header("connection", named)),
                Err(Reason::Malformed)
            );
        }
        assert_eq!(
            outcome(request().header("connection", "close")),
            Ok(Kind::Plain)
        );
    }

    #[test]
    fn methods_that_echo_or_tunnel_are_not_passed_on() {
        for method in ["TRACE", "TRACK", "CONNECT"] {
            let uri = if method == "CONNECT" {
                "cred.test:443"
            } else {
                "/"
            };
            let request = Request::builder()
                .method(method)
                .uri(uri)
                .header("host", "cred.test");
            assert_eq!(outcome(request), Err(Reason::Method), "{method}");
        }
    }

    #[test]
    fn path_that_would_be_read_as_a_host_is_malformed() {
        let http2 = |path: &'static str| {
            let uri = Uri::builder().scheme("https").authority("cred.test");
            let uri = uri.path_and_query(path).build();
            uri.map(|uri| Request::builder().version(Version::HTTP_2).uri(uri))
        };
        for path in ["evil.test/", "http://evil.test/", "@evil.test/", "*"] {
            // Some of them are no URI in the first place.
            if let Ok(request) = http2(path) {
                assert_eq!(outcome(request), Err(Reason::Malformed), "{path}");
            }
        }
        let all = Request::builder().method("OPTIONS").uri("*");
        assert_eq!(outcome(all.header("host", "cred.test")), Ok(Kind::Plain));
    }

    #[test]
    fn header_with_underscores_is_the_one_with_dashes() {
        let headers = |name: &'static str| {
            HeaderMap::from_iter([(HeaderName::from_static(name), "1".parse().unwrap())])
        };
        assert!(has_disguised_credential(&headers("x_api_key")));
        assert!(has_disguised_credential(&headers("x-api_key")));
        assert!(!has_disguised_credential(&headers("x_trace_id")));
        assert!(!has_disguised_credential(&headers("x-api-key")));
    }

    #[test]
    fn websocket_is_told_apart_in_both_protocols() {
        let http1 = Request::builder()
            .uri("/x")
            .header("host", "cred.test")
            .header("connection", "keep-alive, Upgrade")
            .header("upgrade", "WebSocket");
        assert_eq!(outcome(http1), Ok(Kind::UpgradeHttp1));
        let with_body = Request::builder()
            .uri("/x")
            .header("host", "cred.test")
            .header("connection", "upgrade")
            .header("upgrade", "websocket")
            .header("content-length", "5");
        assert_eq!(outcome(with_body), Err(Reason::Malformed));
        let http2 = |protocol: &'static str| {
            Request::builder()
                .version(Version::HTTP_2)
                .method("CONNECT")
                .uri("https://cred.test/x")
                .extension(Protocol::from_static(protocol))
        };
        assert_eq!(outcome(http2("websocket")), Ok(Kind::ConnectHttp2));
        assert_eq!(outcome(http2("connect-udp")), Err(Reason::Method));
        let h2c = Request::builder()
            .uri("/x")
            .header("host", "cred.test")
            .header("connection", "upgrade")
            .header("upgrade", "h2c");
        assert_eq!(outcome(h2c), Ok(Kind::Plain));
    }
}
