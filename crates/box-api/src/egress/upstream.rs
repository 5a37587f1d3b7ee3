//! What lies between this machine and the internet: a proxy of its network, resolvers reached over
//! TLS.

use super::name::{HostName, HostPattern};
use super::network::Network;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// Entries of [`UpstreamProxy::direct`].
pub const DIRECT_MAX: usize = 256;

/// The proxy connections to hosts are made through, by `CONNECT` (RFC 9110 §9.3.6), whatever the
/// port. Its `user:password` is no part of this type: it comes behind the CA's key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpstreamProxy {
    pub host: ProxyHost,
    pub port: u16,
    /// How many bytes at the end of the appendix are its `user:password`; 0: it asks for none.
    pub login_bytes: u32,
    /// Hosts that are reached without it.
    #[serde(default)]
    pub direct: Vec<Direct>,
    #[serde(default)]
    pub told: Told,
}

/// Where the proxy is: the deployment's own choice, so that it may be a private address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ProxyHost {
    Address(IpAddr),
    Name(HostName),
}

impl ProxyHost {
    /// Reads an address, with brackets where it is an IPv6 one or without, or a name.
    pub fn parse(text: &str) -> Option<Self> {
        let bare = text
            .strip_prefix('[')
            .and_then(|text| text.strip_suffix(']'));
        match bare.unwrap_or(text).parse() {
            Ok(address) => Some(Self::Address(address)),
            Err(_) => HostName::parse(text).ok().map(Self::Name),
        }
    }
}

impl fmt::Display for ProxyHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}

impl From<ProxyHost> for String {
    fn from(host: ProxyHost) -> Self {
        host.to_string()
    }
}

impl TryFrom<String> for ProxyHost {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or("a proxy is a name or an address")
    }
}

/// What the proxy is told to connect to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    /// The address that was found and judged here. The proxy cannot be led elsewhere by DNS.
    #[default]
    Address,
    /// The name; the proxy resolves it, and what it may lead to is for the proxy to judge.
    Name,
}

/// A host that is reached without the proxy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Direct {
    /// The domain and all below it, as `no_proxy` of most clients means it.
    Domain(HostName),
    /// `*.host`, one label, or `host:port`.
    Pattern(HostPattern),
    Network(Network),
}

impl Direct {
    /// Reads an entry of `no_proxy`: `host`, `.host`, `*.host`, `host:port`, an address or network.
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(network) = Network::parse(text) {
            return Some(Self::Network(network));
        }
        let domain = text.strip_prefix('.').unwrap_or(text);
        if let Ok(name) = HostName::parse(domain) {
            return Some(Self::Domain(name));
        }
        HostPattern::parse(text).ok().map(Self::Pattern)
    }

    /// Whether it is about this name and port.
    pub fn is_for(&self, host: &HostName, port: u16) -> bool {
        match self {
            Self::Domain(domain) => {
                let rest = host.as_str().strip_suffix(domain.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            }
            Self::Pattern(pattern) => match pattern.port() {
                Some(own) => own == port && pattern.matches_host(host),
                None => pattern.matches_host(host),
            },
            Self::Network(_) => false,
        }
    }

    /// Whether it is about this address.
    pub fn holds(&self, address: IpAddr) -> bool {
        match self {
            Self::Network(network) => network.contains(address),
            Self::Domain(_) | Self::Pattern(_) => false,
        }
    }
}

impl fmt::Display for Direct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Domain(name) => name.fmt(f),
            Self::Pattern(pattern) => pattern.fmt(f),
            Self::Network(network) => network.fmt(f),
        }
    }
}

impl From<Direct> for String {
    fn from(direct: Direct) -> Self {
        direct.to_string()
    }
}

impl TryFrom<String> for Direct {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or("an entry of `no_proxy` is a host, an address or a network")
    }
}

/// A name server that is asked over TLS, so that the network between learns no names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SecureResolver {
    pub address: SocketAddr,
    /// What its certificate is for.
    pub name: CertifiedAs,
    pub way: SecureWay,
}

/// How a name server is spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecureWay {
    /// DNS over TLS (RFC 7858).
    Tls,
    /// DNS over HTTPS (RFC 8484), at this path.
    Https { path: String },
}

/// What a certificate is for.
pub type CertifiedAs = ProxyHost;

const DOT_PORT: u16 = 853;
const DOH_PORT: u16 = 443;
const DOH_PATH: &str = "/dns-query";

impl SecureResolver {
    /// Reads `tls://9.9.9.9#dns.quad9.net` or `https://9.9.9.9/dns-query#dns.quad9.net`. It is
    /// found by its address, as nobody else is asked for names; what follows `#` is the name its
    /// certificate is for, without it the address.
    ///
    /// # Errors
    /// What is wrong, as a half sentence.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let (url, name) = match text.split_once('#') {
            Some((url, name)) => (url, Some(name)),
            None => (text, None),
        };
        let (rest, way, usual) = if let Some(rest) = url.strip_prefix("tls://") {
            (rest, SecureWay::Tls, DOT_PORT)
        } else if let Some(rest) = url.strip_prefix("https://") {
            let at = rest.find('/').unwrap_or(rest.len());
            let (rest, path) = rest.split_at(at);
            let path = if path.is_empty() { DOH_PATH } else { path };
            if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err("its path holds visible ASCII characters");
            }
            let path = path.to_owned();
            (rest, SecureWay::Https { path }, DOH_PORT)
        } else {
            return Err("it begins with `tls://` or `https://`");
        };
        let bare = rest.trim_start_matches('[').trim_end_matches(']');
        let address = bare.parse().map(|address| SocketAddr::new(address, usual));
        let address = address.or_else(|_| rest.parse());
        let address: SocketAddr =
            address.map_err(|_| "it is named by its address; its name follows a `#`")?;
        let name = match name {
            None => CertifiedAs::Address(address.ip()),
            Some(name) => CertifiedAs::parse(name).ok_or("what follows the `#` is no name")?,
        };
        Ok(Self { address, name, way })
    }
}

impl fmt::Display for SecureResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.way {
            SecureWay::Tls => write!(f, "tls://{}#{}", self.address, self.name),
            SecureWay::Https { path } => {
                write!(f, "https://{}{path}#{}", self.address, self.name)
            }
        }
    }
}

impl From<SecureResolver> for String {
    fn from(resolver: SecureResolver) -> Self {
        resolver.to_string()
    }
}

impl TryFrom<String> for SecureResolver {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolver_is_named_by_its_address() {
        for (text, shown) in [
            (
                "tls://9.9.9.9#dns.quad9.net",
                "tls://9.9.9.9:853#dns.quad9.net",
            ),
            (
                "tls://[2620:fe::fe]",
                "tls://[2620:fe::fe]:853#[2620:fe::fe]",
            ),
            (
                "https://9.9.9.9#a.test",
                "https://9.9.9.9:443/dns-query#a.test",
            ),
            (
                "https://9.9.9.9:8443/x#a.test",
                "https://9.9.9.9:8443/x#a.test",
            ),
        ] {
            let resolver = SecureResolver::parse(text).unwrap();
            assert_eq!(resolver.to_string(), shown);
            assert_eq!(SecureResolver::parse(shown).unwrap(), resolver);
        }
        for bad in [
            "9.9.9.9",
            "tls://dns.quad9.net",
            "https://dns.test/dns-query",
            "tls://9.9.9.9#",
        ] {
            assert!(SecureResolver::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn entry_of_no_proxy_means_the_domain_and_all_below() {
        let name = |text| HostName::parse(text).unwrap();
        let corp = Direct::parse(".corp.example").unwrap();
        assert!(corp.is_for(&name("corp.example"), 443));
        assert!(corp.is_for(&name("a.b.corp.example"), 22));
        assert!(!corp.is_for(&name("notcorp.example"), 443));
        let ported = Direct::parse("git.test:22").unwrap();
        assert!(ported.is_for(&name("git.test"), 22));
        assert!(!ported.is_for(&name("git.test"), 443));
        let net = Direct::parse("10.0.0.0/8").unwrap();
        assert!(net.holds("10.1.2.3".parse().unwrap()));
        assert!(!net.holds("11.1.2.3".parse().unwrap()));
    }
}
