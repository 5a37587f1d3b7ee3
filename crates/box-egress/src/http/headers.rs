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

/// Takes out what must not reach the host.
pub(crate) fn clean_request(headers: &mut HeaderMap) {
    clean_hop_by_hop(headers);
    for name in &TO_PROXIES {
        headers.remove(name);
    }
}

/// Takes out what must not reach the box.
pub(crate) fn clean_response(headers: &mut HeaderMap) {
    clean_hop_by_hop(headers);
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
        clean_request(&mut headers);
        let left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(left, ["x-three"]);
    }
}
