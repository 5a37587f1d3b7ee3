//! Which headers go through. What concerns one connection only, and what could steer a proxy,
//! stays behind (RFC 9110 §7.6.1; catalogue E21, E22).

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// Never passed on, in either direction.
const HOP_BY_HOP: [HeaderName; 10] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("http2-settings"),
];

/// Not passed on to a host: they speak to proxies, or about the client's network.
const TO_PROXIES: [HeaderName; 11] = [
    header::EXPECT,
    header::FORWARDED,
    header::VIA,
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-forwarded-proto"),
    HeaderName::from_static("x-real-ip"),
    HeaderName::from_static("x-unix-socket"),
    HeaderName::from_static("x-upstream-https-proxy"),
    HeaderName::from_static("x-smokescreen-role"),
    HeaderName::from_static("x-box-egress"),
];

/// What no trailer may say: it would speak about the message in front of it (RFC 9110 §6.5.1).
const NEVER_BEHIND: [HeaderName; 9] = [
    header::CONTENT_LENGTH,
    header::CONTENT_ENCODING,
    header::CONTENT_TYPE,
    header::CONTENT_RANGE,
    header::HOST,
    header::LOCATION,
    header::WWW_AUTHENTICATE,
    header::CACHE_CONTROL,
    header::AUTHORIZATION,
];

/// Not passed on to a box: other ways to the host, which do not exist here, and our own word.
const FROM_HOSTS: [HeaderName; 2] = [
    HeaderName::from_static("alt-svc"),
    HeaderName::from_static("x-box-egress"),
];

/// The header names that `Connection` lists, in lower case as header names are.
pub(crate) fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    let values = headers.get_all(header::CONNECTION).iter();
    let tokens = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    tokens
        .filter_map(|token| token.trim().parse().ok())
        .collect()
}

/// Takes out what must not reach the host. That the box takes trailers is said again: gRPC hosts
/// want to hear it.
pub(crate) fn clean_request(headers: &mut HeaderMap) {
    let takes_trailers = takes_trailers(headers);
    clean_hop_by_hop(headers);
    for name in &TO_PROXIES {
        headers.remove(name);
    }
    if takes_trailers {
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
    }
    join_cookies(headers);
}

/// Takes out what must not reach the box.
pub(crate) fn clean_response(headers: &mut HeaderMap) {
    clean_hop_by_hop(headers);
    for name in &FROM_HOSTS {
        headers.remove(name);
    }
}

/// Takes out of an answer's trailers what must not reach the box.
pub(crate) fn clean_trailers(headers: &mut HeaderMap) {
    clean_response(headers);
    for name in &NEVER_BEHIND {
        headers.remove(name);
    }
}

/// Whether `TE` lists `trailers`.
pub(crate) fn takes_trailers(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::TE).iter();
    let mut codings = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    codings.any(|coding| coding.trim().eq_ignore_ascii_case("trailers"))
}

/// HTTP/2 may send a cookie in crumbs, which HTTP/1.1 wants in one line (RFC 9113 §8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let crumbs: Vec<&[u8]> = headers
        .get_all(header::COOKIE)
        .iter()
        .map(HeaderValue::as_bytes)
        .collect();
    if crumbs.len() > 1
        && let Ok(joined) = HeaderValue::from_bytes(&crumbs.join(b"; ".as_slice()))
    {
        headers.insert(header::COOKIE, joined);
    }
}

fn clean_hop_by_hop(headers: &mut HeaderMap) {
    for name in named_by_connection(headers) {
        headers.remove(name);
    }
    for name in &HOP_BY_HOP {
        headers.remove(name);
    }
}

/// Asks for or agrees to a WebSocket on an HTTP/1.1 connection.
pub(crate) fn set_upgrade(headers: &mut HeaderMap) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_one_connection_stays_behind() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, x-one"),
            ("connection", "x-two"),
            ("x-one", "1"),
            ("x-two", "2"),
            ("x-three", "3"),
            ("keep-alive", "timeout=5"),
            ("proxy-authorization", "Basic eDp5"),
            ("x-upstream-https-proxy", "http://evil.test"),
            ("te", "trailers"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        headers.append("cookie", HeaderValue::from_static("__cf_bm=1"));
        headers.append("cookie", HeaderValue::from_static("_cfuvid=2"));
        clean_request(&mut headers);
        assert_eq!(headers["te"], "trailers");
        assert_eq!(headers["cookie"], "__cf_bm=1; _cfuvid=2");
        let left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(left, ["x-three", "cookie", "te"]);
    }
}
