//! Where a browser is written to. The address comes from a page, so it is trusted with nothing: a
//! name, https, the usual port, and addresses that are public.

use box_api::egress::HostName;
use box_api::page::PUSH_ENDPOINT_BYTES_MAX;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use url::{Host, Url};

pub(super) const PORT: u16 = 443;

/// Why an address is not written to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    #[error("it has more than {PUSH_ENDPOINT_BYTES_MAX} bytes")]
    Long,
    #[error("it is no `https://` address")]
    Scheme,
    #[error("it has no name of a host")]
    Host,
    #[error("it has a port of its own")]
    Port,
    #[error("it has a user, a password or a fragment")]
    Extra,
}

/// An address of a push service that may be tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Endpoint {
    text: String,
    host: HostName,
    target: String,
}

impl Endpoint {
    pub(super) fn parse(text: &str) -> Result<Self, EndpointError> {
        if text.len() > PUSH_ENDPOINT_BYTES_MAX {
            return Err(EndpointError::Long);
        }
        let url = Url::parse(text).map_err(|_| EndpointError::Scheme)?;
        if url.scheme() != "https" {
            return Err(EndpointError::Scheme);
        }
        let Some(Host::Domain(name)) = url.host() else {
            return Err(EndpointError::Host);
        };
        // A name of one label leads to a machine nearby, if anywhere.
        let host = HostName::parse(name).ok().filter(|_| name.contains('.'));
        let host = host.ok_or(EndpointError::Host)?;
        if url.port().is_some() {
            return Err(EndpointError::Port);
        }
        let bare = url.username().is_empty() && url.password().is_none();
        if !bare || url.fragment().is_some() {
            return Err(EndpointError::Extra);
        }
        let query = url.query().map(|query| format!("?{query}"));
        Ok(Self {
            target: format!("{}{}", url.path(), query.unwrap_or_default()),
            text: text.to_owned(),
            host,
        })
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn host(&self) -> &str {
        self.host.as_str()
    }

    pub(super) fn name(&self) -> &HostName {
        &self.host
    }

    /// Path and query.
    pub(super) fn target(&self) -> &str {
        &self.target
    }

    /// Whom a signature is for (RFC 8292 §2).
    pub(super) fn audience(&self) -> String {
        format!("https://{}", self.host())
    }
}

/// Whether everybody reaches this address: what is special in any way is not (the IANA registries
/// of special-purpose addresses), nor is an IPv6 address that carries an IPv4 one.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || address.is_multicast()
        || address.is_broadcast()
        || matches!(
            (a, b, c),
            (0 | 240..=255, ..) | (100, 64..=127, _) | (192, 0, 0) | (192, 88, 99) | (198, 18 | 19, _)
        )
        // A cloud's metadata, in public space.
        || address == Ipv4Addr::new(168, 63, 129, 16);
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, _, _, id, tag, ..] = address.segments();
    let global = a & 0xe000 == 0x2000;
    // Teredo and other protocol assignments, documentation, 6to4.
    let special = (a == 0x2001 && (b < 0x0200 || b == 0x0db8))
        || a == 0x2002
        || (a == 0x3fff && b < 0x1000)
        // RFC 5214 §6.1: ISATAP.
        || (id & !0x0200 == 0 && tag == 0x5efe);
    global && !special
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_over_https_at_the_usual_port_are_taken() {
        let fine = Endpoint::parse("https://push.example.org/v1/abc?x=1").unwrap();
        assert_eq!(fine.host(), "push.example.org");
        assert_eq!(fine.target(), "/v1/abc?x=1");
        assert_eq!(fine.audience(), "https://push.example.org");
        assert!(Endpoint::parse("https://push.example.org:443/x").is_ok());
        let cases = [
            ("http://push.example.org/", EndpointError::Scheme),
            ("file:///etc/passwd", EndpointError::Scheme),
            ("push.example.org", EndpointError::Scheme),
            ("https://127.0.0.1/", EndpointError::Host),
            ("https://0x7f000001/", EndpointError::Host),
            ("https://[::1]/", EndpointError::Host),
            ("https://localhost/", EndpointError::Host),
            ("https://push.example.org:8443/", EndpointError::Port),
            ("https://a:b@push.example.org/", EndpointError::Extra),
            ("https://push.example.org/#x", EndpointError::Extra),
        ];
        for (text, why) in cases {
            assert_eq!(Endpoint::parse(text), Err(why), "{text}");
        }
        let long = format!("https://push.example.org/{}", "x".repeat(2048));
        assert_eq!(Endpoint::parse(&long), Err(EndpointError::Long));
    }

    #[test]
    fn addresses_that_are_not_everybodys_are_not_dialled() {
        for public in [
            "45.33.32.101",
            "8.8.8.8",
            "2606:4700::1111",
            "2001:4860:4860::8888",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for private in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "192.0.0.1",
            "192.0.2.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "168.63.129.16",
            "192.88.99.1",
            "::",
            "::1",
            "fe80::1",
            "fd00::1",
            "fec0::1",
            "ff02::1",
            "::ffff:10.0.0.1",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2001::1",
            "2001:db8::1",
            "2002:808:808::1",
            "3fff::1",
            "2606:4700::5efe:a00:1",
            "2606:4700::200:5efe:a00:1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
    }
}
