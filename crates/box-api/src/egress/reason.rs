//! Why something did not go through, each in a word for programs.

use serde::{Deserialize, Serialize};

/// Why something did not go through: the machine-readable half of `x-box-egress`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    // The policy.
    /// No policy for this box, or box-egress is not configured.
    NoPolicy,
    NotListed,
    Denied,
    /// The host is allowed, this port is not.
    Port,
    IpLiteral,
    /// A name of this machine or its network (`localhost`, `*.internal`, single labels).
    LocalName,
    /// The name leads to an address that is not public.
    PrivateAddress,
    /// Plain http to a host that has a credential.
    PlainHttp,
    /// The name leads into a network the owner denies.
    DeniedNetwork,
    /// A rule about requests refuses this one, or none lets it through.
    DeniedRequest,
    /// The path of a request can be read in more than one way, on a host with rules about paths.
    AmbiguousPath,
    /// There are rules about requests to this host, and its requests cannot be read.
    NotOpened,
    // What the box sent.
    Malformed,
    SniMismatch,
    NoSni,
    NotTls,
    HostMismatch,
    Method,
    UnknownAddress,
    ForeignCredential,
    ForeignPlaceholder,
    /// A write at GitHub beyond what the box is bound to; the rule says which.
    GithubScope,
    ClientTls,
    // Limits.
    TooManyConnections,
    TooManyQueries,
    MapFull,
    /// More than the box's budget went to or came from this host.
    Budget,
    Timeout,
    // Missing here.
    NoCa,
    CredentialMissing,
    /// Nobody logs in inside this box.
    LoginsOff,
    /// A token endpoint answered what could not be read, so that nothing of it was passed on.
    LoginUnread,
    // The far end.
    Dns,
    Unreachable,
    UpstreamTls,
    UpstreamFailed,
    /// The proxy between this machine and the internet did not connect.
    UpstreamProxy,
}

impl Reason {
    /// The word that goes into `x-box-egress` and JSON.
    pub fn slug(self) -> &'static str {
        match self {
            Self::NoPolicy => "no_policy",
            Self::NotListed => "not_listed",
            Self::Denied => "denied",
            Self::Port => "port",
            Self::IpLiteral => "ip_literal",
            Self::LocalName => "local_name",
            Self::PrivateAddress => "private_address",
            Self::PlainHttp => "plain_http",
            Self::DeniedNetwork => "denied_network",
            Self::DeniedRequest => "denied_request",
            Self::AmbiguousPath => "ambiguous_path",
            Self::NotOpened => "not_opened",
            Self::Malformed => "malformed",
            Self::SniMismatch => "sni_mismatch",
            Self::NoSni => "no_sni",
            Self::NotTls => "not_tls",
            Self::HostMismatch => "host_mismatch",
            Self::Method => "method",
            Self::UnknownAddress => "unknown_address",
            Self::ForeignCredential => "foreign_credential",
            Self::ForeignPlaceholder => "foreign_placeholder",
            Self::GithubScope => "github_scope",
            Self::ClientTls => "client_tls",
            Self::TooManyConnections => "too_many_connections",
            Self::TooManyQueries => "too_many_queries",
            Self::MapFull => "map_full",
            Self::Budget => "budget",
            Self::Timeout => "timeout",
            Self::NoCa => "no_ca",
            Self::CredentialMissing => "credential_missing",
            Self::LoginsOff => "logins_off",
            Self::LoginUnread => "login_unread",
            Self::Dns => "dns",
            Self::Unreachable => "unreachable",
            Self::UpstreamTls => "upstream_tls",
            Self::UpstreamFailed => "upstream_failed",
            Self::UpstreamProxy => "upstream_proxy",
        }
    }
}
