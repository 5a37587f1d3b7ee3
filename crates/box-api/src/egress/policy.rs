//! What a box may reach, as data, and what a decision says. Deciding is box-egress's.

use super::traffic::NetLimits;
use super::{GithubScope, HostPattern, Logins, Network, PrivateEntry, Reason, RequestPattern};
use crate::control::NetPreset;
use serde::{Deserialize, Serialize};

/// Entries each list of a policy can have.
pub const ENTRIES_MAX: usize = 4096;

/// Where a box may connect to. Deny wins over everything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    pub preset: NetPreset,
    /// What the preset stands for on this machine; only read for [`NetPreset::Balanced`], whose
    /// list the host makes from the machine's own registries, the forges and the agents' hosts.
    #[serde(default)]
    pub preset_hosts: Vec<HostPattern>,
    /// Added by the owner.
    #[serde(default)]
    pub allow: Vec<HostPattern>,
    #[serde(default)]
    pub deny: Vec<HostPattern>,
    #[serde(default)]
    pub unlisted: Unlisted,
    /// What becomes of logins made inside.
    #[serde(default)]
    pub logins: Logins,
    /// What logins made inside may write at GitHub; absent: whatever they may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login_scope: Option<GithubScope>,
    /// Where no connection leads, whatever name its address was found under.
    #[serde(default)]
    pub deny_networks: Vec<Network>,
    /// Requests that are let through on hosts that are opened up. A host that one of them names
    /// takes nothing else.
    #[serde(default)]
    pub allow_requests: Vec<RequestPattern>,
    #[serde(default)]
    pub deny_requests: Vec<RequestPattern>,
    /// Names that may lead to a private address (decision D10).
    #[serde(default)]
    pub private: Vec<PrivateEntry>,
    #[serde(default, skip_serializing_if = "NetLimits::is_default")]
    pub limits: NetLimits,
}

/// What becomes of a connection to a host that no entry names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unlisted {
    /// Nobody is there to be asked.
    #[default]
    Refuse,
    /// It waits while a person is asked, [`HELD_SECONDS_MAX`] at most.
    Ask,
}

/// Longest a connection waits for a person.
pub const HELD_SECONDS_MAX: u64 = 20;

impl Policy {
    /// Only what is listed, and nothing is listed.
    pub fn nothing() -> Self {
        Self {
            preset: NetPreset::Locked,
            preset_hosts: Vec::new(),
            allow: Vec::new(),
            deny: Vec::new(),
            unlisted: Unlisted::Refuse,
            logins: Logins::Plain,
            login_scope: None,
            deny_networks: Vec::new(),
            allow_requests: Vec::new(),
            deny_requests: Vec::new(),
            private: Vec::new(),
            limits: NetLimits::default(),
        }
    }
}

/// What a policy says about a host and port, and which entry said so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    Allowed { rule: Rule },
    Refused { reason: Reason, rule: Option<Rule> },
}

/// Which part of a policy decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "snake_case")]
pub enum Rule {
    /// The preset lets every public host through.
    Open,
    /// A credential the box has a placeholder for belongs to the host (C131).
    Credential,
    /// An entry the preset stands for.
    Preset {
        entry: HostPattern,
    },
    Allow {
        entry: HostPattern,
    },
    Deny {
        entry: HostPattern,
    },
    DenyNetwork {
        network: Network,
    },
    AllowRequest {
        entry: RequestPattern,
    },
    DenyRequest {
        entry: RequestPattern,
    },
    /// An exception for one name on a private address.
    Private {
        entry: PrivateEntry,
    },
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Open => f.write_str("preset open"),
            Self::Credential => f.write_str("credential"),
            Self::Preset { entry } => write!(f, "preset {entry}"),
            Self::Allow { entry } => write!(f, "allow {entry}"),
            Self::Deny { entry } => write!(f, "deny {entry}"),
            Self::DenyNetwork { network } => write!(f, "deny {network}"),
            Self::AllowRequest { entry } => write!(f, "allow {entry}"),
            Self::DenyRequest { entry } => write!(f, "deny {entry}"),
            Self::Private { entry } => write!(f, "private {entry}"),
        }
    }
}
