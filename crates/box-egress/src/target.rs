//! What a connection wants: one host and port, named the same everywhere it is named.

use crate::http::head::{Authority, Head, Host};
use crate::refuse::Refused;
use box_api::egress::{HostName, Reason};

/// How a client of the proxy port wants to be connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `CONNECT host:port`: a tunnel.
    Connect,
    /// `GET http://host/…`: one request, passed on.
    Absolute,
}

/// Where a client of the proxy port wants to go.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) form: Form,
    pub(crate) host: HostName,
    pub(crate) port: u16,
}

const HTTP_PORT: u16 = 80;

impl Target {
    /// Reads the request line and the `Host` header of a request to the proxy port.
    pub(crate) fn of_proxy_request(head: &Head) -> Result<Self, Refused> {
        if head.method == "CONNECT" {
            connect(head)
        } else {
            absolute(head)
        }
    }

    /// Checks a request that reached its host directly: origin form, for `host` at port 80.
    pub(crate) fn check_origin_request(head: &Head, host: &HostName) -> Result<(), Refused> {
        let named = origin_host(head)?;
        if named == *host {
            Ok(())
        } else {
            Err(Refused::new(host.as_str(), HTTP_PORT, Reason::HostMismatch))
        }
    }
}

/// The host of a request in origin form on port 80, by its `Host` header.
pub(crate) fn origin_host(head: &Head) -> Result<HostName, Refused> {
    let is_origin = head.target.starts_with('/') || head.target == "*";
    let host = head.host().map_err(|_| malformed(""))?;
    match host {
        Some(Authority { host, port })
            if is_origin && port.is_none_or(|port| port == HTTP_PORT) =>
        {
            named(host, HTTP_PORT)
        }
        Some(_) | None => Err(malformed("")),
    }
}

fn connect(head: &Head) -> Result<Target, Refused> {
    let whole = || malformed(&head.target);
    let authority = Authority::parse(&head.target).ok_or_else(whole)?;
    let port = authority.port.ok_or_else(whole)?;
    let has_body = head.has("content-length") || head.has("transfer-encoding");
    let agrees = match head.host().map_err(|_| whole())? {
        None => true,
        Some(host) => host.host == authority.host && host.port.is_none_or(|own| own == port),
    };
    if has_body || !agrees {
        return Err(whole());
    }
    Ok(Target {
        form: Form::Connect,
        host: named(authority.host, port)?,
        port,
    })
}

fn absolute(head: &Head) -> Result<Target, Refused> {
    let whole = || malformed(&head.target);
    let rest = strip_http(&head.target).ok_or_else(whole)?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let authority = Authority::parse(&rest[..end]).ok_or_else(whole)?;
    let port = authority.port.unwrap_or(HTTP_PORT);
    let host = head.host().map_err(|_| whole())?.ok_or_else(whole)?;
    let agrees = host.host == authority.host && host.port.unwrap_or(HTTP_PORT) == port;
    if !agrees || rest.contains(['#', '\\']) {
        return Err(whole());
    }
    Ok(Target {
        form: Form::Absolute,
        host: named(authority.host, port)?,
        port,
    })
}

fn strip_http(target: &str) -> Option<&str> {
    let (scheme, rest) = target.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case("http://").then_some(rest)
}

fn named(host: Host, port: u16) -> Result<HostName, Refused> {
    match host {
        Host::Name(name) => Ok(name),
        Host::Literal(addr) => Err(Refused::new(&addr.to_string(), port, Reason::IpLiteral)),
    }
}

fn malformed(target: &str) -> Refused {
    Refused::new(target, 0, Reason::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::head::read_head;
    use bytes::Bytes;

    async fn target(request: &str) -> Result<Target, Reason> {
        let mut stream = request.as_bytes();
        let head = read_head(&mut stream, Bytes::new())
            .await
            .map_err(|_| Reason::Malformed)?;
        Target::of_proxy_request(&head).map_err(|refused| refused.reason)
    }

    async fn connect_to(authority: &str) -> Result<Target, Reason> {
        target(&format!(
            "CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n"
        ))
        .await
    }

    #[tokio::test]
    async fn connect_names_a_host_and_port() {
        let ok = |port| {
            let host = HostName::parse("ok.test").unwrap();
            Ok(Target {
                form: Form::Connect,
                host,
                port,
            })
        };
        assert_eq!(connect_to("OK.TEST:443").await, ok(443));
        assert_eq!(connect_to("ok.test.:443").await, ok(443));
        assert_eq!(target("CONNECT ok.test:22 HTTP/1.0\r\n\r\n").await, ok(22));
        assert_eq!(
            target("CONNECT ok.test:443 HTTP/1.1\r\nHost: ok.test\r\n\r\n").await,
            ok(443)
        );
    }

    #[tokio::test]
    async fn addresses_are_refused_as_such_whatever_they_are() {
        for authority in [
            "45.33.32.156:443",
            "127.0.0.1:443",
            "[::1]:443",
            "[::ffff:7f00:1]:443",
        ] {
            assert_eq!(
                connect_to(authority).await,
                Err(Reason::IpLiteral),
                "{authority}"
            );
            let absolute = format!("GET http://{authority}/ HTTP/1.1\r\nHost: {authority}\r\n\r\n");
            assert_eq!(
                target(&absolute).await,
                Err(Reason::IpLiteral),
                "{authority}"
            );
        }
    }

    #[tokio::test]
    async fn connect_that_says_two_things_is_malformed() {
        for request in [
            // D2, D4, D6, D22
            "CONNECT ok.test HTTP/1.1\r\nHost: ok.test\r\n\r\n",
            "CONNECT https://ok.test:443/ HTTP/1.1\r\nHost: ok.test\r\n\r\n",
            "CONNECT ok.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n",
            "CONNECT ok.test:443 HTTP/1.1\r\nHost: ok.test:80\r\n\r\n",
            "CONNECT ok.test:443 HTTP/1.1\r\nHost: ok.test\r\nContent-Length: 40\r\n\r\n",
            "CONNECT ok.test@evil.test:443 HTTP/1.1\r\n\r\n",
            "CONNECT bücher.test:443 HTTP/1.1\r\n\r\n",
            "CONNECT 0x7f.1:443 HTTP/1.1\r\n\r\n",
        ] {
            assert_eq!(target(request).await, Err(Reason::Malformed), "{request:?}");
        }
    }

    #[tokio::test]
    async fn absolute_form_names_a_host() {
        let host = HostName::parse("ok.test").unwrap();
        let ok = |port| {
            Ok(Target {
                form: Form::Absolute,
                host: host.clone(),
                port,
            })
        };
        for uri in [
            "http://ok.test/",
            "HTTP://OK.test",
            "http://ok.test?x",
            "http://ok.test:80/",
        ] {
            let request = format!("GET {uri} HTTP/1.1\r\nHost: ok.test\r\n\r\n");
            assert_eq!(target(&request).await, ok(80), "{uri}");
        }
        let other_port = "GET http://ok.test:8080/ HTTP/1.1\r\nHost: ok.test:8080\r\n\r\n";
        assert_eq!(target(other_port).await, ok(8080));
    }

    #[tokio::test]
    async fn absolute_form_that_is_unclear_is_malformed() {
        for uri in [
            // E15–E17, B21, B22
            "http://ok.test@evil.test/",
            "http://u:p@ok.test/",
            "http://ok.test\\@evil.test/",
            "http:///ok.test/",
            "http://ok.test#@evil.test/",
            "http://ok.test/#x",
            "ftp://ok.test/",
            "gopher://ok.test/",
            "file:///etc/passwd",
            "ws://ok.test/",
            "https://ok.test/",
            "/policy",
            "//ok.test/",
            "*",
            "http://0x7f.1/",
            "http://①②⑦.⓪.⓪.①/",
        ] {
            let request = format!("GET {uri} HTTP/1.1\r\nHost: ok.test\r\n\r\n");
            assert_eq!(target(&request).await, Err(Reason::Malformed), "{uri}");
        }
        for host in ["Host: evil.test\r\n", "Host: ok.test:81\r\n", ""] {
            let request = format!("GET http://ok.test/ HTTP/1.1\r\n{host}\r\n");
            assert_eq!(target(&request).await, Err(Reason::Malformed), "{host:?}");
        }
    }

    #[tokio::test]
    async fn origin_request_is_for_the_host_the_address_stands_for() {
        let ok = HostName::parse("ok.test").unwrap();
        let check = async |request: &str| {
            let mut stream = request.as_bytes();
            let head = read_head(&mut stream, Bytes::new())
                .await
                .map_err(|_| Reason::Malformed)?;
            Target::check_origin_request(&head, &ok).map_err(|refused| refused.reason)
        };
        assert_eq!(
            check("GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n").await,
            Ok(())
        );
        assert_eq!(
            check("OPTIONS * HTTP/1.1\r\nHost: ok.test:80\r\n\r\n").await,
            Ok(())
        );
        for (request, reason) in [
            (
                "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
                Reason::HostMismatch,
            ),
            ("GET / HTTP/1.1\r\n\r\n", Reason::Malformed),
            (
                "GET http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n",
                Reason::Malformed,
            ),
            (
                "CONNECT ok.test:443 HTTP/1.1\r\nHost: ok.test\r\n\r\n",
                Reason::Malformed,
            ),
            (
                "GET / HTTP/1.1\r\nHost: ok.test:81\r\n\r\n",
                Reason::Malformed,
            ),
        ] {
            assert_eq!(check(request).await, Err(reason), "{request:?}");
        }
    }
}
