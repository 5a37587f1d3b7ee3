//! Certificates the system trusts and the extra ones of the settings, as PEM; and the machine's
//! name servers.

use crate::settings::Settings;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

const PEM_LINE_CHARS: usize = 64;
const EXTRA_ROOTS_BYTES_MAX: u64 = 4 << 20;
const RESOLV_CONF: &str = "/etc/resolv.conf";
const RESOLV_CONF_BYTES_MAX: usize = 64 << 10;
/// As many as the resolver of glibc asks (resolv.conf(5), `MAXNS`).
const RESOLVERS_MAX: usize = 3;
const DNS_PORT: u16 = 53;

/// Why the roots could not be gathered.
#[derive(Debug, thiserror::Error)]
pub enum RootsError {
    #[error("could not read the extra roots `{path}`")]
    Extra {
        path: String,
        #[source]
        source: io::Error,
    },
    #[error("the extra roots `{path}` hold no certificate in PEM form")]
    NotPem { path: String },
}

/// What upstream servers are judged by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Roots {
    pub(crate) system_pem: String,
    pub(crate) extra_pem: String,
}

/// Reads both. Blocks for some milliseconds.
pub(crate) fn read(settings: &Settings) -> Result<Roots, RootsError> {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "a certificate of this machine is left out");
    }
    let extra_pem = match &settings.extra_roots.value {
        Some(path) => extra(path)?,
        None => String::new(),
    };
    let system_pem: String = found.certs.iter().map(|cert| pem(cert)).collect();
    if system_pem.is_empty() && extra_pem.is_empty() {
        tracing::warn!("this machine has no certificates a server could be judged by");
    }
    Ok(Roots {
        system_pem,
        extra_pem,
    })
}

fn extra(path: &Path) -> Result<String, RootsError> {
    let name = || path.display().to_string();
    let fail = |source| RootsError::Extra {
        path: name(),
        source,
    };
    if std::fs::metadata(path).map_err(fail)?.len() > EXTRA_ROOTS_BYTES_MAX {
        return Err(fail(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "it is longer than 4 MiB",
        )));
    }
    let mut text = std::fs::read_to_string(path).map_err(fail)?;
    if !text.contains("-----BEGIN CERTIFICATE-----") {
        return Err(RootsError::NotPem { path: name() });
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

/// RFC 7468 §5.1.
fn pem(der: &[u8]) -> String {
    let body = STANDARD.encode(der);
    let mut text = String::with_capacity(body.len() + body.len() / PEM_LINE_CHARS + 60);
    text.push_str("-----BEGIN CERTIFICATE-----\n");
    let mut rest = body.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(PEM_LINE_CHARS));
        text.push_str(line);
        text.push('\n');
        rest = after;
    }
    text.push_str("-----END CERTIFICATE-----\n");
    text
}

/// The name servers box-egress asks: those of the settings, else the machine's.
pub(crate) fn resolvers(settings: &Settings) -> Vec<SocketAddr> {
    if !settings.resolvers.value.is_empty() {
        return settings.resolvers.value.clone();
    }
    let mut text = std::fs::read(RESOLV_CONF).unwrap_or_default();
    text.truncate(RESOLV_CONF_BYTES_MAX);
    of_resolv_conf(&String::from_utf8_lossy(&text))
}

/// resolv.conf(5): without any `nameserver` the local machine is asked.
fn of_resolv_conf(text: &str) -> Vec<SocketAddr> {
    let servers = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let named = words.next() == Some("nameserver");
        // A zone (`fe80::1%eth0`) is not part of an address here; such a server is left out.
        words.next().filter(|_| named)?.parse::<IpAddr>().ok()
    });
    let servers: Vec<SocketAddr> = servers
        .take(RESOLVERS_MAX)
        .map(|address| SocketAddr::new(address, DNS_PORT))
        .collect();
    if servers.is_empty() {
        return vec![SocketAddr::from((Ipv4Addr::LOCALHOST, DNS_PORT))];
    }
    servers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_name_servers_are_asked_in_order() {
        let text = "# made by hand\nsearch corp.example\nnameserver 192.0.2.1\nnameserver\n\
                    nameserver 2001:db8::1\noptions ndots:5\nnameserver 192.0.2.3\nnameserver 192.0.2.4\n";
        let expected = ["192.0.2.1:53", "[2001:db8::1]:53", "192.0.2.3:53"];
        assert_eq!(of_resolv_conf(text), expected.map(|a| a.parse().unwrap()));
        assert_eq!(of_resolv_conf(""), ["127.0.0.1:53".parse().unwrap()]);
    }

    /// B102: whatever the machine itself asks.
    #[test]
    fn the_name_servers_of_the_settings_are_the_only_ones() {
        let text = "[egress]\nresolvers = [\"192.0.2.53:53\", \"[2001:db8::53]:5353\"]\n";
        let settings = Settings::parse(Path::new("config.toml"), text).unwrap();
        let expected = ["192.0.2.53:53", "[2001:db8::53]:5353"];
        assert_eq!(resolvers(&settings), expected.map(|a| a.parse().unwrap()));
        assert_eq!(
            resolvers(&Settings::default()),
            of_resolv_conf(&std::fs::read_to_string(RESOLV_CONF).unwrap_or_default())
        );
    }

    #[test]
    fn a_certificate_is_wrapped_as_the_rfc_says() {
        let text = pem(&[0; 50]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "-----BEGIN CERTIFICATE-----");
        assert_eq!(lines[1].len(), 64);
        assert_eq!(lines[2].len(), 4);
        assert_eq!(lines.len(), 4);
    }
}
