//! `[page]`: where the page listens, and by which names it is reached.

use super::read::{list, text};
use super::{Origin, Setting};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use toml::Value;

/// The port of the page where nothing else is said: `BOXS` on a telephone's keys.
pub const PORT: u16 = 2697;
const HOSTS_MAX: usize = 16;
const PROXIES_MAX: usize = 16;
/// Longest host name (RFC 1035).
const HOST_BYTES_MAX: usize = 253;

/// Where the page listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listen {
    /// On loopback at [`PORT`], or the next free port after it.
    Usual,
    At(SocketAddr),
    /// There is no page.
    Off,
}

impl Listen {
    /// # Errors
    /// What it should be.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(Self::Off),
            "" => Ok(Self::Usual),
            text => text.parse().map(Self::At).map_err(|_| {
                format!("`{text}` is neither `off` nor an address such as `127.0.0.1:{PORT}`")
            }),
        }
    }

    /// As it stands in the file.
    pub fn shown(&self) -> String {
        match self {
            Self::Usual => SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)).to_string(),
            Self::At(address) => address.to_string(),
            Self::Off => "off".to_owned(),
        }
    }
}

/// `[page]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageSettings {
    /// `listen`
    pub listen: Setting<Listen>,
    /// `hosts`: names, with a port where it is not the usual one, by which a reverse proxy is
    /// reached from outside.
    pub hosts: Setting<Vec<String>>,
    /// `proxies`: addresses whose `X-Forwarded-*` are believed.
    pub proxies: Setting<Vec<IpAddr>>,
    /// `metrics`: `/metrics` answers without a sign-in.
    pub metrics: Setting<bool>,
}

impl Default for PageSettings {
    fn default() -> Self {
        Self {
            listen: Setting::default_of(Listen::Usual),
            hosts: Setting::default_of(Vec::new()),
            proxies: Setting::default_of(Vec::new()),
            metrics: Setting::default_of(false),
        }
    }
}

impl PageSettings {
    pub(super) fn put_listen(&mut self, value: &Value, origin: Origin) -> Result<(), String> {
        let value = Listen::parse(text(value)?)?;
        self.listen = Setting { value, origin };
        Ok(())
    }

    pub(super) fn put_hosts(&mut self, value: &Value, origin: Origin) -> Result<(), String> {
        let value = list(value, HOSTS_MAX, host)?;
        self.hosts = Setting { value, origin };
        Ok(())
    }

    pub(super) fn put_proxies(&mut self, value: &Value, origin: Origin) -> Result<(), String> {
        let value = list(value, PROXIES_MAX, address)?;
        self.proxies = Setting { value, origin };
        Ok(())
    }

    pub(super) fn put_metrics(&mut self, value: &Value, origin: Origin) -> Result<(), String> {
        let value = value
            .as_bool()
            .ok_or_else(|| format!("it is {}, not `true` or `false`", value.type_str()))?;
        self.metrics = Setting { value, origin };
        Ok(())
    }
}

/// `boxes.example.org` or `boxes.example.org:8443`, in lower case.
fn host(text: &str) -> Result<String, String> {
    let wrong = || format!("`{text}` is no host name such as `boxes.example.org`");
    let (name, port) = match text.split_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (text, None),
    };
    if port.is_some_and(|port| port.parse::<u16>().is_err()) {
        return Err(wrong());
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    if name.is_empty() || name.len() > HOST_BYTES_MAX || !name.bytes().all(plain) {
        return Err(wrong());
    }
    Ok(text.to_ascii_lowercase())
}

fn address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| format!("`{text}` is no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_apart_at_the_door() {
        assert_eq!(Listen::parse("off"), Ok(Listen::Off));
        assert_eq!(
            Listen::parse("[::1]:80"),
            Ok(Listen::At("[::1]:80".parse().unwrap()))
        );
        for bad in ["localhost:80", "127.0.0.1", ":80", "on"] {
            assert!(Listen::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(Listen::Usual.shown(), "127.0.0.1:2697");
    }

    #[test]
    fn names_from_outside_are_names() {
        assert_eq!(
            host("Boxes.Example.org:8443"),
            Ok("boxes.example.org:8443".into())
        );
        for bad in ["", "*", "a b", "http://a", "a:b", "a/b", "*.example.org"] {
            assert!(host(bad).is_err(), "{bad}");
        }
    }
}
