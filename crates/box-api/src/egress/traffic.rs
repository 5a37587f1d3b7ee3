//! What box-egress tells of connections while they are open, of what they amounted to, and of what
//! looks like theft; and the limits a box's traffic has.

use super::HostName;
use crate::BoxId;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Kinds of requests that are told of one connection.
pub const EXCHANGES_MAX: usize = 32;

/// How a connection came to box-egress, and whether it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entrance {
    /// By the address a name stands for.
    Transparent,
    /// By the proxy variables.
    Proxy,
}

impl Entrance {
    /// The word that is shown and stored.
    pub fn word(self) -> &'static str {
        match self {
            Self::Transparent => "transparent",
            Self::Proxy => "proxy",
        }
    }
}

/// The two ends of a connection inside the box, as `/proc/<pid>/net/tcp` there has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ends {
    /// The side of the program in the box.
    pub program: SocketAddr,
    /// The side of box-egress.
    pub way_out: SocketAddr,
}

/// Requests of one method and status on a connection that was read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Exchange {
    /// `GET`, `POST`, …; `OTHER` for what is none of the registered methods.
    pub method: String,
    /// Status of the answer; 0 when none came.
    pub status: u16,
    pub times: u64,
}

/// A connection that is open. Told when it opens, and every few seconds while bytes flow; each
/// time all there is to know, so that a host which starts later learns of it as well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open {
    pub box_id: BoxId,
    /// Counts up from 1 for each box, for the life of box-egress.
    pub connection: u64,
    pub host: HostName,
    pub port: u16,
    /// As in [`super::Passed::rule`].
    pub rule: String,
    pub entrance: Entrance,
    pub ends: Option<Ends>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<SocketAddr>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    pub sent_bytes: u64,
    pub received_bytes: u64,
    pub began_at_ms: i64,
    pub at_ms: i64,
}

/// What looks as if somebody steals, or tries doors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalKind {
    /// A placeholder of the box went to a host it is not for.
    PlaceholderElsewhere,
    /// A placeholder of another box was used.
    PlaceholderOfAnotherBox,
    /// A placeholder went out over plain http.
    PlaceholderInPlain,
    /// A host sent the credential back.
    CredentialEchoed,
    /// Names that look as if they carry data.
    DataInNames,
    /// Many different hosts refused in a short time.
    ManyRefused,
    /// More went to or came from one host than the box's budget says, or than is usual.
    MuchTraffic,
}

impl SignalKind {
    pub const ALL: [Self; 7] = [
        Self::PlaceholderElsewhere,
        Self::PlaceholderOfAnotherBox,
        Self::PlaceholderInPlain,
        Self::CredentialEchoed,
        Self::DataInNames,
        Self::ManyRefused,
        Self::MuchTraffic,
    ];

    /// The word that is stored and goes into JSON.
    pub fn slug(self) -> &'static str {
        match self {
            Self::PlaceholderElsewhere => "placeholder_elsewhere",
            Self::PlaceholderOfAnotherBox => "placeholder_of_another_box",
            Self::PlaceholderInPlain => "placeholder_in_plain",
            Self::CredentialEchoed => "credential_echoed",
            Self::DataInNames => "data_in_names",
            Self::ManyRefused => "many_refused",
            Self::MuchTraffic => "much_traffic",
        }
    }

    /// Whether ordinary work never does it, so that a box may be frozen for it where its owner
    /// wants that. An echo is the host's doing, many refusals are a clumsy script as often as a
    /// scan, and a budget already holds by itself.
    pub fn can_freeze(self) -> bool {
        match self {
            Self::PlaceholderElsewhere
            | Self::PlaceholderOfAnotherBox
            | Self::PlaceholderInPlain
            | Self::DataInNames => true,
            Self::CredentialEchoed | Self::ManyRefused | Self::MuchTraffic => false,
        }
    }
}

/// A signal, told at most once in a while for each kind and host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signal {
    pub box_id: BoxId,
    pub kind: SignalKind,
    /// The host or zone it is about; may be anything the box wrote.
    pub host: String,
    /// A number that belongs to it: names, hosts or bytes.
    #[serde(default)]
    pub count: u64,
    pub at_ms: i64,
}

/// Limits of a box's traffic. Absent: what box-egress has for every box.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetLimits {
    /// Bytes to and from any one host, both ways together, since box-egress knows the box. Past it
    /// connections to that host are closed and refused ([`super::Reason::Budget`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_bytes: Option<u64>,
    /// Connections that are open at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u32>,
}

impl NetLimits {
    /// Whether nothing is limited further.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// One, for what is told once at a time by older builds.
pub(super) fn once() -> u64 {
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slug_of_a_signal_is_its_name_on_the_wire() {
        for kind in SignalKind::ALL {
            let word = serde_json::to_value(kind).unwrap();
            assert_eq!(word, kind.slug());
        }
    }
}
