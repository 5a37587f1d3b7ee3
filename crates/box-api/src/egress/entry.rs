//! Entries as owners write them: a host, a network, a rule about requests, or one private exception.

use super::name::{HostName, HostPattern, HostPatternError};
use super::network::{Network, NetworkError};
use super::path::{CanonicalPath, GlobError, PathGlob};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;

/// Methods one rule can name.
const METHODS_MAX: usize = 16;
const METHOD_BYTES_MAX: usize = 32;

/// Why an entry was refused. The text names the entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    #[error(transparent)]
    Host(#[from] HostPatternError),
    #[error(transparent)]
    Network(#[from] NetworkError),
    #[error("`{entry}`: methods are upper case and separated by commas, as in `GET,HEAD`, or `*`")]
    Method { entry: String },
    #[error("`{entry}`: a rule about requests is for `https://` and one host")]
    Site { entry: String },
    #[error("`{entry}`: {source}")]
    Path {
        entry: String,
        #[source]
        source: GlobError,
    },
    #[error("`{entry}` names no single `name:port`")]
    NotOnePort { entry: String },
    #[error("`{entry}` names this machine itself")]
    ThisMachine { entry: String },
}

/// What an owner allows or denies.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Entry {
    Host(HostPattern),
    Network(Network),
    Request(RequestPattern),
}

impl Entry {
    /// Reads `host`, `*.host`, `host:port`, `address`, `address/bits` or
    /// `METHODS https://host/path`.
    ///
    /// # Errors
    /// [`EntryError`], which names the entry.
    pub fn parse(text: &str) -> Result<Self, EntryError> {
        if text.contains(' ') {
            return RequestPattern::parse(text).map(Self::Request);
        }
        let address = text.split('/').next().unwrap_or_default();
        if address.parse::<IpAddr>().is_ok() {
            return Ok(Self::Network(Network::parse(text)?));
        }
        Ok(Self::Host(HostPattern::parse(text)?))
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(pattern) => pattern.fmt(f),
            Self::Network(network) => network.fmt(f),
            Self::Request(request) => request.fmt(f),
        }
    }
}

impl From<Entry> for String {
    fn from(entry: Entry) -> Self {
        entry.to_string()
    }
}

impl TryFrom<String> for Entry {
    type Error = EntryError;
    fn try_from(text: String) -> Result<Self, EntryError> {
        Self::parse(&text)
    }
}

/// Requests to one host that is opened up, on port 443: by method and path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RequestPattern {
    /// Sorted; empty: any.
    methods: Vec<String>,
    host: HostName,
    path: PathGlob,
}

impl RequestPattern {
    /// # Errors
    /// [`EntryError`], which names the entry.
    pub fn parse(text: &str) -> Result<Self, EntryError> {
        let entry = || text.to_owned();
        let (methods, url) = text
            .split_once(' ')
            .ok_or_else(|| EntryError::Method { entry: entry() })?;
        let methods = methods_of(methods).ok_or_else(|| EntryError::Method { entry: entry() })?;
        let rest = url.trim_start().strip_prefix("https://");
        let rest = rest.ok_or_else(|| EntryError::Site { entry: entry() })?;
        let at = rest.find('/').unwrap_or(rest.len());
        let (host, path) = rest.split_at(at);
        let host = host.strip_suffix(":443").unwrap_or(host);
        let host = HostName::parse(host).map_err(|_| EntryError::Site { entry: entry() })?;
        let path = if path.is_empty() { "/" } else { path };
        let path = PathGlob::parse(path).map_err(|source| EntryError::Path {
            entry: entry(),
            source,
        })?;
        Ok(Self {
            methods,
            host,
            path,
        })
    }

    pub fn host(&self) -> &HostName {
        &self.host
    }

    /// Whether a request is surely one of those meant. For rules that let something through.
    pub fn matches_surely(&self, method: &str, path: &CanonicalPath) -> bool {
        let any = self.methods.is_empty();
        (any || self.methods.iter().any(|own| own == method)) && self.path.matches_surely(path)
    }

    /// Whether a request could be taken for one of those meant. For rules that refuse something.
    pub fn matches_maybe(&self, method: &str, path: &CanonicalPath) -> bool {
        let any = self.methods.is_empty();
        let same = |own: &String| own.eq_ignore_ascii_case(method);
        (any || self.methods.iter().any(same)) && self.path.matches_maybe(path)
    }
}

fn methods_of(text: &str) -> Option<Vec<String>> {
    if text == "*" {
        return Some(Vec::new());
    }
    let mut methods: Vec<String> = text.split(',').map(str::to_owned).collect();
    let is_method = |method: &String| {
        let known = |byte: u8| byte.is_ascii_uppercase() || byte == b'-';
        (1..=METHOD_BYTES_MAX).contains(&method.len()) && method.bytes().all(known)
    };
    if methods.len() > METHODS_MAX || !methods.iter().all(is_method) {
        return None;
    }
    methods.sort();
    methods.dedup();
    Some(methods)
}

impl fmt::Display for RequestPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.methods.is_empty() {
            f.write_str("*")?;
        }
        f.write_str(&self.methods.join(","))?;
        write!(f, " https://{}{}", self.host, self.path)
    }
}

impl From<RequestPattern> for String {
    fn from(pattern: RequestPattern) -> Self {
        pattern.to_string()
    }
}

impl TryFrom<String> for RequestPattern {
    type Error = EntryError;
    fn try_from(text: String) -> Result<Self, EntryError> {
        Self::parse(&text)
    }
}

/// The one `name:port` an owner lets a box reach although its address is private (decision D10).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PrivateEntry {
    pub host: HostName,
    pub port: u16,
}

/// Last labels that never leave the machine, or stand for no host.
const NEVER: [&str; 3] = ["localhost", "localdomain", "arpa"];

impl PrivateEntry {
    /// # Errors
    /// [`EntryError`], which names the entry.
    pub fn parse(text: &str) -> Result<Self, EntryError> {
        let entry = || text.to_owned();
        let one = || EntryError::NotOnePort { entry: entry() };
        if text.contains(['*', '/', ' ', '[']) {
            return Err(one());
        }
        let (host, port) = text.split_once(':').ok_or_else(one)?;
        let port = super::name::parse_port(port).ok_or_else(one)?;
        let host = HostName::parse(host).map_err(|_| one())?;
        let last = host.as_str().rsplit('.').next().unwrap_or_default();
        if NEVER.contains(&last) {
            return Err(EntryError::ThisMachine { entry: entry() });
        }
        if !host.as_str().contains('.') {
            return Err(one());
        }
        Ok(Self { host, port })
    }
}

impl fmt::Display for PrivateEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl From<PrivateEntry> for String {
    fn from(entry: PrivateEntry) -> Self {
        entry.to_string()
    }
}

impl TryFrom<String> for PrivateEntry {
    type Error = EntryError;
    fn try_from(text: String) -> Result<Self, EntryError> {
        Self::parse(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_is_read_and_written_in_one_form() {
        for (text, shown) in [
            ("OK.test", "ok.test"),
            ("*.ok.test", "*.ok.test"),
            ("git.test:22", "git.test:22"),
            ("203.0.113.0/24", "203.0.113.0/24"),
            ("203.0.113.7", "203.0.113.7/32"),
            ("2001:DB8::/32", "2001:db8::/32"),
            (
                "HEAD,GET,GET https://API.test/repos/%72/*",
                "GET,HEAD https://api.test/repos/r/*",
            ),
            ("* https://api.test", "* https://api.test/"),
            ("PUT https://api.test:443/x", "PUT https://api.test/x"),
        ] {
            let entry = Entry::parse(text).unwrap();
            assert_eq!(entry.to_string(), shown);
            assert_eq!(Entry::parse(shown).unwrap(), entry);
        }
    }

    #[test]
    fn what_is_no_entry_is_refused_by_name() {
        for entry in [
            "https://ok.test/",
            "get https://ok.test/",
            "GET, https://ok.test/",
            "GET http://ok.test/",
            "GET https://*.ok.test/",
            "GET https://ok.test:8443/",
            "GET https://u@ok.test/",
            "GET https://ok.test/a?b",
            "GET https://ok.test/../a",
            "GET ok.test",
            "203.0.113.7/24",
            "127.0.0.1:80",
            "[::1]:443",
        ] {
            let error = Entry::parse(entry).unwrap_err();
            assert!(error.to_string().contains(&format!("`{entry}`")), "{error}");
        }
    }

    #[test]
    fn private_exception_is_one_name_and_port() {
        let entry = PrivateEntry::parse("DB.corp.example:5432").unwrap();
        assert_eq!(entry.to_string(), "db.corp.example:5432");
        assert!(PrivateEntry::parse("db.internal:5432").is_ok());
        for entry in [
            "db.corp.example",
            "*.corp.example:5432",
            "db:5432",
            "10.0.0.1:5432",
            "[fd00::1]:5432",
            "localhost:5432",
            "x.localhost:5432",
            "db.corp.example:0",
            "db.corp.example:5432/x",
            "1.0.0.127.in-addr.arpa:53",
        ] {
            let error = PrivateEntry::parse(entry).unwrap_err();
            assert!(error.to_string().contains(&format!("`{entry}`")), "{error}");
        }
    }
}
