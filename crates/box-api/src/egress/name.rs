//! Names of hosts: what counts as one, and the patterns a policy lists.
//!
//! The same parser stands before the allow list, the request line, the `Host` header, SNI and DNS,
//! so that all of them mean the same by the same bytes.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::Ipv4Addr;

const NAME_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

/// Last labels that stand for this machine, its network or a cluster (RFC 6761, RFC 6762,
/// RFC 8375; `svc` is Kubernetes' own; the rest are what home routers hand out).
const LOCAL_SUFFIXES: [&str; 10] = [
    "localhost",
    "localdomain",
    "local",
    "internal",
    "lan",
    "home",
    "corp",
    "intranet",
    "svc",
    "arpa",
];

/// Why a text is not the name of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HostNameError {
    #[error("the name is empty")]
    Empty,
    #[error("the name has more than 253 characters")]
    TooLong,
    #[error("a part between two dots is empty or has more than 63 characters")]
    Label,
    #[error("a name outside ASCII is written in its `xn--` form")]
    NotAscii,
    #[error("a name has letters, digits, `-`, `_` and dots, and no part starts or ends with `-`")]
    Character,
    #[error("a name whose last part is a number is an address")]
    Address,
}

/// A host's name: ASCII, lower case, no dot at the end, at most 253 characters, labels of 1–63
/// (RFC 1035 §2.3.4). Underscores are allowed, they occur. Never an address in any of its
/// spellings: the last label is not a number (WHATWG URL, *ends in a number*).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostName(Box<str>);

impl HostName {
    /// Accepts any case and one dot at the end.
    ///
    /// # Errors
    /// [`HostNameError`] says which rule the text breaks.
    pub fn parse(text: &str) -> Result<Self, HostNameError> {
        let text = text.strip_suffix('.').unwrap_or(text);
        if text.is_empty() {
            return Err(HostNameError::Empty);
        }
        if !text.is_ascii() {
            return Err(HostNameError::NotAscii);
        }
        if text.len() > NAME_BYTES_MAX {
            return Err(HostNameError::TooLong);
        }
        text.split('.').try_for_each(check_label)?;
        if text.rsplit('.').next().is_some_and(is_number) {
            return Err(HostNameError::Address);
        }
        Ok(Self(text.to_ascii_lowercase().into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it names this machine or its network: a single label, or under a suffix such as
    /// `localhost`, `local`, `internal`, `svc`. Such names are refused before anything is asked.
    pub fn is_local(&self) -> bool {
        match self.0.rsplit_once('.') {
            None => true,
            Some((_, last)) => LOCAL_SUFFIXES.contains(&last),
        }
    }
}

fn check_label(label: &str) -> Result<(), HostNameError> {
    if label.is_empty() || label.len() > LABEL_BYTES_MAX {
        return Err(HostNameError::Label);
    }
    let known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if !label.bytes().all(known) || label.starts_with('-') || label.ends_with('-') {
        return Err(HostNameError::Character);
    }
    Ok(())
}

/// Whether a URL parser would take a last label for part of an IPv4 address.
fn is_number(label: &str) -> bool {
    let hex = label
        .strip_prefix("0x")
        .or_else(|| label.strip_prefix("0X"));
    match hex {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => label.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<HostName> for String {
    fn from(name: HostName) -> Self {
        name.0.into()
    }
}

impl TryFrom<String> for HostName {
    type Error = HostNameError;
    fn try_from(text: String) -> Result<Self, HostNameError> {
        Self::parse(&text)
    }
}

/// Why an entry of a policy was refused. The text names the entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostPatternError {
    #[error("`{entry}` is a URL; a policy lists hosts")]
    Url { entry: String },
    #[error("`{entry}` is an address; a policy lists names")]
    Address { entry: String },
    #[error("`{entry}`: a `*` stands for the whole first part, as in `*.example.com`")]
    Wildcard { entry: String },
    #[error("`{entry}` would match too much; at least two parts follow the `*`")]
    TooWide { entry: String },
    #[error("`{entry}`: a port is a number from 1 to 65535")]
    Port { entry: String },
    #[error("`{entry}`: {source}")]
    Name {
        entry: String,
        source: HostNameError,
    },
}

/// An entry of a policy: `host`, `*.host` (exactly one label more), each with `:port` or without,
/// which means ports 80 and 443.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostPattern {
    any_first_label: AnyFirstLabel,
    name: HostName,
    port: Option<u16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum AnyFirstLabel {
    No,
    Yes,
}

/// How a pattern stands to a host and port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatternMatch {
    No,
    /// The host is meant, another port is.
    HostOnly,
    Yes,
}

/// The ports an entry without a port means.
pub const WEB_PORTS: [u16; 2] = [80, 443];

impl HostPattern {
    /// # Errors
    /// [`HostPatternError`], which names the entry.
    pub fn parse(text: &str) -> Result<Self, HostPatternError> {
        let entry = || text.to_owned();
        if text.contains('/') {
            return Err(HostPatternError::Url { entry: entry() });
        }
        let (host, port) = split_port(text)?;
        let (any_first_label, host) = match host.strip_prefix("*.") {
            Some(rest) => (AnyFirstLabel::Yes, rest),
            None => (AnyFirstLabel::No, host),
        };
        if host.contains('*') {
            return Err(HostPatternError::Wildcard { entry: entry() });
        }
        let name = HostName::parse(host).map_err(|source| {
            if source == HostNameError::Address {
                HostPatternError::Address { entry: entry() }
            } else {
                HostPatternError::Name {
                    entry: entry(),
                    source,
                }
            }
        })?;
        if any_first_label == AnyFirstLabel::Yes && !name.as_str().contains('.') {
            return Err(HostPatternError::TooWide { entry: entry() });
        }
        Ok(Self {
            any_first_label,
            name,
            port,
        })
    }

    /// Whether this entry is about `host` at `port`.
    pub fn matches(&self, host: &HostName, port: u16) -> PatternMatch {
        let same_host = match self.any_first_label {
            AnyFirstLabel::No => host == &self.name,
            AnyFirstLabel::Yes => host
                .as_str()
                .split_once('.')
                .is_some_and(|(_, rest)| rest == self.name.as_str()),
        };
        let same_port = match self.port {
            Some(own) => own == port,
            None => WEB_PORTS.contains(&port),
        };
        match (same_host, same_port) {
            (false, _) => PatternMatch::No,
            (true, false) => PatternMatch::HostOnly,
            (true, true) => PatternMatch::Yes,
        }
    }

    /// Whether this entry is about `host`, at whatever port.
    pub fn matches_host(&self, host: &HostName) -> bool {
        self.matches(host, 0) != PatternMatch::No
    }

    /// The name, without the `*.` of a wildcard.
    pub fn name(&self) -> &HostName {
        &self.name
    }

    pub fn is_wildcard(&self) -> bool {
        self.any_first_label == AnyFirstLabel::Yes
    }

    /// Whether an entry that denies this leaves nothing of one that allows `other`.
    pub fn covers(&self, other: &Self) -> bool {
        let same_host = match other.any_first_label {
            AnyFirstLabel::No => self.matches_host(&other.name),
            AnyFirstLabel::Yes => self.is_wildcard() && self.name == other.name,
        };
        same_host && (self.port.is_none() || self.port == other.port)
    }

    /// The port it names, if it does.
    pub fn port(&self) -> Option<u16> {
        self.port
    }
}

fn split_port(text: &str) -> Result<(&str, Option<u16>), HostPatternError> {
    let entry = || text.to_owned();
    let Some((host, port)) = text.rsplit_once(':') else {
        return Ok((text, None));
    };
    if host.contains(':') || host.starts_with('[') {
        return Err(HostPatternError::Address { entry: entry() });
    }
    if host.parse::<Ipv4Addr>().is_ok() {
        return Err(HostPatternError::Address { entry: entry() });
    }
    parse_port(port)
        .map(|port| (host, Some(port)))
        .ok_or(HostPatternError::Port { entry: entry() })
}

/// A port as it may stand in a request: 1–65535, digits only, no leading zero.
pub fn parse_port(text: &str) -> Option<u16> {
    let digits = !text.is_empty() && text.len() <= 5 && text.bytes().all(|b| b.is_ascii_digit());
    if !digits || text.starts_with('0') {
        return None;
    }
    text.parse().ok()
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.any_first_label == AnyFirstLabel::Yes {
            f.write_str("*.")?;
        }
        self.name.fmt(f)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl From<HostPattern> for String {
    fn from(pattern: HostPattern) -> Self {
        pattern.to_string()
    }
}

impl TryFrom<String> for HostPattern {
    type Error = HostPatternError;
    fn try_from(text: String) -> Result<Self, HostPatternError> {
        Self::parse(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> HostName {
        HostName::parse(text).unwrap()
    }

    #[test]
    fn name_is_folded_and_loses_one_trailing_dot() {
        assert_eq!(name("OK.Test.").as_str(), "ok.test");
        assert_eq!(name("a_b.wild.test").as_str(), "a_b.wild.test");
        assert_eq!(name("xn--bcher-kva.test").as_str(), "xn--bcher-kva.test");
    }

    #[test]
    fn what_is_no_name_is_refused_with_its_rule() {
        let long = format!("{}.test", "a.".repeat(130));
        let label = format!("{}.test", "a".repeat(64));
        for (text, error) in [
            ("", HostNameError::Empty),
            (".", HostNameError::Empty),
            ("ok.test..", HostNameError::Label),
            (".wild.test", HostNameError::Label),
            ("a..wild.test", HostNameError::Label),
            (label.as_str(), HostNameError::Label),
            (long.as_str(), HostNameError::TooLong),
            ("bücher.test", HostNameError::NotAscii),
            ("127。0。0。1", HostNameError::NotAscii),
            ("evil.test\0.wild.test", HostNameError::Character),
            ("evil.test%00.wild.test", HostNameError::Character),
            ("ok.test@evil.test", HostNameError::Character),
            ("ok .test", HostNameError::Character),
            ("ok.test\r\nx", HostNameError::Character),
            ("-a.wild.test", HostNameError::Character),
            ("a-.wild.test", HostNameError::Character),
            ("[::1]", HostNameError::Character),
            ("127.0.0.1", HostNameError::Address),
            ("2130706433", HostNameError::Address),
            ("017700000001", HostNameError::Address),
            ("0x7f000001", HostNameError::Address),
            ("0x7f.1", HostNameError::Address),
            ("127.1", HostNameError::Address),
            ("0", HostNameError::Address),
            ("a.0x", HostNameError::Address),
        ] {
            assert_eq!(HostName::parse(text), Err(error), "{text:?}");
        }
    }

    #[test]
    fn local_names_are_known_as_such() {
        for text in [
            "intranet",
            "localhost",
            "x.localhost",
            "foo.local",
            "x.internal",
            "metadata.google.internal",
            "host.docker.internal",
            "kubernetes.default.svc",
        ] {
            assert!(name(text).is_local(), "{text}");
        }
        for text in ["ok.test", "local.test", "internal.example.com"] {
            assert!(!name(text).is_local(), "{text}");
        }
    }

    #[test]
    fn wildcard_stands_for_exactly_one_label() {
        let wild = HostPattern::parse("*.wild.test").unwrap();
        assert_eq!(wild.matches(&name("a.wild.test"), 443), PatternMatch::Yes);
        assert_eq!(wild.matches(&name("a.wild.test"), 80), PatternMatch::Yes);
        assert_eq!(
            wild.matches(&name("a.wild.test"), 22),
            PatternMatch::HostOnly
        );
        for other in [
            "wild.test",
            "a.b.wild.test",
            "notwild.test",
            "a.wild.test.evil.test",
        ] {
            assert_eq!(wild.matches(&name(other), 443), PatternMatch::No, "{other}");
        }
    }

    #[test]
    fn port_of_an_entry_is_the_only_one_it_allows() {
        let ssh = HostPattern::parse("git.test:22").unwrap();
        assert_eq!(ssh.matches(&name("git.test"), 22), PatternMatch::Yes);
        assert_eq!(ssh.matches(&name("git.test"), 443), PatternMatch::HostOnly);
        assert_eq!(ssh.to_string(), "git.test:22");
    }

    #[test]
    fn entries_that_are_no_hosts_are_refused_by_name() {
        for entry in [
            "https://ok.test/x",
            "ok.test/x",
            "*",
            "*.com",
            "ex*mple.com",
            "a.*.test",
            "",
            "bücher.test",
            "127.0.0.1",
            "127.0.0.1:80",
            "[::1]:443",
            "ok.test:0",
            "ok.test:0443",
            "ok.test:65536",
            "ok.test:https",
        ] {
            let error = HostPattern::parse(entry).unwrap_err();
            assert!(error.to_string().contains(&format!("`{entry}`")), "{error}");
        }
    }
}
