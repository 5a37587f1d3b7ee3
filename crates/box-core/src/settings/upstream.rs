//! `[egress]`: the proxy between this machine and the internet, and resolvers reached over TLS.

use super::read::{list, text};
use super::{Origin, Setting};
use box_api::egress::upstream::{DIRECT_MAX, Direct, ProxyHost, Told};
use box_api::egress::{SecureResolver, UpstreamProxy};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use toml::Value;
use zeroize::Zeroizing;

const DNS_PORT: u16 = 53;
/// As curl takes it where a proxy's URL names none.
const PROXY_PORT: u16 = 1080;
const LOGIN_BYTES_MAX: usize = 4096;

/// `[egress]`, but for what is in the clear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamSettings {
    /// Those of `resolvers` that are asked over TLS; either all are, or none.
    pub secure_resolvers: Vec<SecureResolver>,
    /// `proxy`; without it the variable `HTTPS_PROXY` of the host.
    pub proxy: Setting<Option<ProxySetting>>,
    /// `no_proxy`; without it the variable `NO_PROXY` of the host.
    pub no_proxy: Setting<Vec<Direct>>,
    /// `proxy_told`
    pub told: Setting<Told>,
}

impl Default for UpstreamSettings {
    fn default() -> Self {
        Self {
            secure_resolvers: Vec::new(),
            proxy: Setting::default_of(None),
            no_proxy: Setting::default_of(Vec::new()),
            told: Setting::default_of(Told::Address),
        }
    }
}

/// Where the proxy is, and who we are to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxySetting {
    pub host: ProxyHost,
    pub port: u16,
    pub login: Login,
}

/// `user:password`; wiped when the last copy goes, and never written down anywhere.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Login(Arc<Zeroizing<Vec<u8>>>);

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login(not shown)")
    }
}

impl Login {
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl ProxySetting {
    /// Reads `http://user:password@host:port`. The texts of errors hold nothing of it.
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        let rest = match url.split_once("://") {
            Some(("http", rest)) => rest,
            Some(_) => return Err("a proxy is spoken to by `http://`".to_owned()),
            None => url,
        };
        let rest = rest.trim_end_matches('/');
        if rest.contains(['/', '?', '#']) {
            return Err("a proxy is `http://host:port`, without a path".to_owned());
        }
        let (login, site) = match rest.rsplit_once('@') {
            Some((login, site)) => (login_of(login)?, site),
            None => (Login::default(), rest),
        };
        let (host, port) = match site.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
                let port = box_api::egress::name::parse_port(port);
                (host, port.ok_or("its port is a number from 1 to 65535")?)
            }
            _ => (site, PROXY_PORT),
        };
        let host = ProxyHost::parse(host).ok_or("its host is no name and no address")?;
        Ok(Self { host, port, login })
    }

    /// As it is shown: who we are to it is not.
    pub(super) fn shown(&self) -> String {
        let login = if self.login.bytes().is_empty() {
            ""
        } else {
            "***@"
        };
        format!("http://{login}{}:{}", self.host, self.port)
    }
}

/// Percent signs are read as in every URL (RFC 3986 §3.2.1).
fn login_of(text: &str) -> Result<Login, String> {
    let odd = || "the name and password in it are not as a URL has them".to_owned();
    if text.len() > LOGIN_BYTES_MAX || !text.is_ascii() {
        return Err(odd());
    }
    // With the whole capacity from the start it is never copied by growing.
    let mut login = Zeroizing::new(Vec::with_capacity(text.len()));
    let mut bytes = text.as_bytes();
    while let [first, rest @ ..] = bytes {
        let (octet, rest) = match (first, rest) {
            (b'%', [high, low, rest @ ..]) => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let octet = digit(*high).zip(digit(*low)).ok_or_else(odd)?;
                (
                    u8::try_from(octet.0 * 16 + octet.1).map_err(|_| odd())?,
                    rest,
                )
            }
            (octet, rest) => (*octet, rest),
        };
        if octet.is_ascii_control() {
            return Err(odd());
        }
        login.push(octet);
        bytes = rest;
    }
    Ok(Login(Arc::new(login)))
}

impl UpstreamSettings {
    pub(super) fn put_proxy(&mut self, value: &Value, origin: Origin) -> Result<(), String> {
        let url = text(value)?;
        let value = if url.is_empty() {
            None
        } else {
            Some(ProxySetting::parse(url)?)
        };
        self.proxy = Setting { value, origin };
        Ok(())
    }

    pub(super) fn put_no_proxy(&mut self, value: &Value, origin: Origin) -> Result<(), String> {
        let value = list(value, DIRECT_MAX, direct)?;
        self.no_proxy = Setting { value, origin };
        Ok(())
    }

    pub(super) fn put_told(&mut self, value: &Value, origin: Origin) -> Result<(), String> {
        let value = match text(value)? {
            "address" => Told::Address,
            "name" => Told::Name,
            other => return Err(format!("`{other}` is neither `address` nor `name`")),
        };
        self.told = Setting { value, origin };
        Ok(())
    }

    /// What box-egress is told, and the login it is sent beside that.
    pub fn of_proxy(&self) -> (Option<UpstreamProxy>, Login) {
        let Some(proxy) = &self.proxy.value else {
            return (None, Login::default());
        };
        let login_bytes = u32::try_from(proxy.login.bytes().len()).unwrap_or(u32::MAX);
        let spec = UpstreamProxy {
            host: proxy.host.clone(),
            port: proxy.port,
            login_bytes,
            direct: self.no_proxy.value.clone(),
            told: self.told.value,
        };
        (Some(spec), proxy.login.clone())
    }
}

pub(super) fn direct(text: &str) -> Result<Direct, String> {
    Direct::parse(text).ok_or_else(|| format!("`{text}` is no host, address or network"))
}

/// A name server of `resolvers`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Server {
    Plain(SocketAddr),
    Secure(SecureResolver),
}

/// `192.0.2.53`, `192.0.2.53:5353`, `[2001:db8::53]:53`, `tls://192.0.2.53#name` or
/// `https://192.0.2.53/dns-query#name`.
pub(super) fn server(text: &str) -> Result<Server, String> {
    if text.contains("://") {
        return SecureResolver::parse(text)
            .map(Server::Secure)
            .map_err(|why| format!("`{text}`: {why}"));
    }
    let bare = text
        .parse::<IpAddr>()
        .map(|address| SocketAddr::new(address, DNS_PORT));
    bare.or_else(|_| text.parse())
        .map(Server::Plain)
        .map_err(|_| format!("`{text}` is not an address"))
}

/// Those in the clear and those over TLS. Both at once would hide nothing.
pub(super) fn servers(
    servers: Vec<Server>,
) -> Result<(Vec<SocketAddr>, Vec<SecureResolver>), String> {
    let (mut plain, mut secure) = (Vec::new(), Vec::new());
    for server in servers {
        match server {
            Server::Plain(address) => plain.push(address),
            Server::Secure(resolver) => secure.push(resolver),
        }
    }
    if !plain.is_empty() && !secure.is_empty() {
        return Err("either all of them are asked over TLS, or none".to_owned());
    }
    Ok((plain, secure))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxy_is_read_as_a_url_and_its_login_is_never_shown() {
        let proxy = ProxySetting::parse("http://me:p%40ss%3Aw@proxy.corp:3128/").unwrap();
        assert_eq!(proxy.login.bytes(), b"me:p@ss:w");
        assert_eq!(proxy.port, 3128);
        assert_eq!(proxy.shown(), "http://***@proxy.corp:3128");
        assert!(!format!("{proxy:?}").contains("p@ss"));
        assert_eq!(ProxySetting::parse("10.0.0.1").unwrap().port, PROXY_PORT);
        let v6 = ProxySetting::parse("http://[fd00::1]:8080").unwrap();
        assert_eq!(v6.shown(), "http://[fd00::1]:8080");
        for bad in [
            "https://me:s3cret@proxy.corp:3128",
            "socks5://s3cret@proxy.corp",
            "http://me:s3cret@proxy.corp:0",
            "http://me:s3cret@pro xy:1",
            "http://me:s3cret@proxy.corp/path",
            "http://me:s3cret%0d@proxy.corp",
            "http://me:s3cret%zz@proxy.corp",
        ] {
            let error = ProxySetting::parse(bad).unwrap_err();
            assert!(!error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn resolvers_are_all_over_tls_or_none() {
        let read = |texts: &[&str]| {
            let all = texts
                .iter()
                .map(|text| server(text))
                .collect::<Result<_, _>>();
            all.and_then(servers)
        };
        assert_eq!(read(&["192.0.2.1"]).unwrap().0.len(), 1);
        assert_eq!(read(&["tls://9.9.9.9#dns.quad9.net"]).unwrap().1.len(), 1);
        assert!(read(&["192.0.2.1", "tls://9.9.9.9"]).is_err());
        assert!(read(&["dns.quad9.net"]).is_err());
    }
}
