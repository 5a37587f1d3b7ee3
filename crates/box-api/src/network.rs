//! A box's network as a person reads and rules it.

use crate::BoxName;
use crate::thread::Decision;
use serde::{Deserialize, Serialize};

/// What became of connections to one host and port, added up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
}

/// The network log of a box.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Net {
    pub name: BoxName,
    /// Stays with the request: lines that change are sent as they do.
    pub follow: bool,
}

/// An open decision with the name of its box.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
        /// Entries: `host`, `*.host`, `host:port`.
        #[serde(default)]
        allow: Vec<String>,
        #[serde(default)]
        deny: Vec<String>,
        /// Entries to be taken away, whatever they say.
        #[serde(default)]
        remove: Vec<String>,
        /// For every box of the caller instead of this one; not for `net`.
        #[serde(default)]
        everywhere: bool,
    },
    /// What would become of a connection, by the decision that counts.
    Check {
        name: BoxName,
        host: String,
        port: u16,
    },
}

/// A policy as it holds for a box.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyShown {
    pub name: BoxName,
    pub net: crate::control::NetPreset,
    /// What the preset stands for on this machine.
    pub preset_hosts: Vec<String>,
    pub entries: Vec<PolicyEntry>,
    /// Hosts reached for a credential the box has a placeholder for (C131).
    pub credential_hosts: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyEntry {
    pub entry: String,
    /// `allow` or `deny`.
    pub verdict: String,
    /// `settings`, `box`, or `all boxes`.
    pub from: String,
}
