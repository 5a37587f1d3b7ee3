//! A box's network as a person reads and rules it.

use crate::BoxName;
use crate::egress::AskedRequest;
use crate::egress::Logins;
pub use crate::egress::traffic::Exchange;
use crate::thread::Decision;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// What became of connections to one host and port, added up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct NetLine {
    /// `host:port`, `host` for a look-up, or an address; empty where the box named nothing.
    pub host: String,
    /// `allowed`, else the reason box-egress gave ([`crate::egress::Reason::slug`]).
    pub verdict: String,
    /// The entry that decided, as written; empty where none did.
    pub rule: String,
    /// The last time, UTC, milliseconds.
    pub at_ms: i64,
    pub times: u64,
    pub sent_bytes: u64,
    pub received_bytes: u64,
    /// The credential used on it, by its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// Whether this is about a connection that is open at this moment.
    #[serde(default)]
    pub open: bool,
    /// The program that did it last, where it could be found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<NetProcess>,
    /// `transparent` or `proxy`; empty where nothing came by either.
    #[serde(default)]
    pub way: String,
    /// The address that was connected to last; empty where nothing was.
    #[serde(default)]
    pub address: String,
    /// How long connections were open, added up.
    #[serde(default)]
    pub open_ms: u64,
    /// Requests that were read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exchanges: Vec<Exchange>,
}

/// A program in a box, as the box itself numbers it. The name is the box's own to choose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct NetProcess {
    pub name: String,
    pub pid: u32,
}

/// The network log of a box.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Net {
    pub name: BoxName,
    /// Stays with the request: lines that change are sent as they do.
    pub follow: bool,
    /// Nothing older than this, UTC, milliseconds.
    #[serde(default)]
    pub since_ms: i64,
}

/// An open decision with the name of its box.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Waiting {
    pub name: BoxName,
    pub decision: Decision,
}

/// What is done to a box's policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum PolicyAsk {
    /// Answer: the policy as it holds.
    Show { name: BoxName },
    /// All of it, or nothing. Answer: the policy as it holds then.
    Set {
        name: BoxName,
        #[serde(default)]
        net: Option<crate::control::NetPreset>,
        /// Entries, see [`crate::egress::Entry`].
        #[serde(default)]
        allow: Vec<String>,
        #[serde(default)]
        deny: Vec<String>,
        /// Entries to be taken away, whatever they say.
        #[serde(default)]
        remove: Vec<String>,
        /// For every box of the caller instead of this one; not for `net` and `private`.
        #[serde(default)]
        everywhere: bool,
        /// `name:port` that may lead to a private address (decision D10).
        #[serde(default)]
        private: Vec<String>,
    },
    /// What would become of a connection, by the decision that counts.
    Check {
        name: BoxName,
        host: String,
        port: u16,
        /// A request on it, judged as well.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked: Option<AskedRequest>,
        /// Judged as if the name led there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        address: Option<IpAddr>,
    },
    /// What a new box would have here. Answer: a policy.
    Defaults,
    /// Reads the settings again, `[net]` and `[egress]` of them. Answer: what is odd about them.
    Reload,
    /// Makes another CA in the place of the deployment's. Answer: the boxes that trust the old one
    /// until they are started again.
    NewCa,
}

/// A policy as it holds for a box.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct PolicyShown {
    pub name: BoxName,
    pub net: crate::control::NetPreset,
    /// What the preset stands for on this machine.
    pub preset_hosts: Vec<String>,
    pub entries: Vec<PolicyEntry>,
    /// Hosts reached for a credential the box has a placeholder for (C131).
    pub credential_hosts: Vec<String>,
    /// What it may write at GitHub, with the refs that go by its name.
    #[serde(default)]
    pub github: crate::egress::GithubScope,
    /// The set of rules of the settings that holds for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net_set: Option<NetSetName>,
    /// What becomes of logins made inside.
    #[serde(default)]
    pub logins: Logins,
    /// What is odd about the entries.
    #[serde(default)]
    pub findings: Vec<Finding>,
}

/// Something odd about an entry of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Finding {
    /// As written.
    pub entry: String,
    /// Where it stands, as [`PolicyEntry::from`] says it.
    pub from: String,
    pub weight: Weight,
    /// A half sentence about the entry.
    pub text: String,
}

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// Never meant: nothing that holds such an entry is taken.
    Error,
    /// Perhaps not what was meant.
    Warning,
}

/// The name of a set of rules in the settings, `[net.sets.<name>]`: `[a-z][a-z0-9-]{0,31}`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema), ts(type = "string"))]
#[serde(try_from = "String", into = "String")]
pub struct NetSetName(String);

const NET_SET_NAME_BYTES_MAX: usize = 32;

impl NetSetName {
    /// # Errors
    /// What a name is.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let sound = text.len() <= NET_SET_NAME_BYTES_MAX
            && text.starts_with(|first: char| first.is_ascii_lowercase())
            && text.bytes().all(known);
        if sound {
            Ok(Self(text.to_owned()))
        } else {
            Err("a name of lower case letters, digits and `-`, as `[net.sets.<name>]` has it")
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for NetSetName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<NetSetName> for String {
    fn from(name: NetSetName) -> Self {
        name.0
    }
}

impl TryFrom<String> for NetSetName {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct PolicyEntry {
    pub entry: String,
    /// `allow`, `deny`, or `private`: an exception for a private address.
    pub verdict: String,
    /// The level it stands at: `settings`, `environment`, `set <name>`, `all boxes`, or `box`.
    pub from: String,
}
