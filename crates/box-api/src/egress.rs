//! The protocol between the host and box-egress, the process every box's traffic goes through.
//!
//! A `SOCK_SEQPACKET` Unix socket, one packet a message, framed by [`packet`]. The host sends
//! [`Call`]s, the first of which is [`Request::Hello`]; box-egress sends [`Message`]s: one
//! [`Message::Answer`] for every call, in order, and [`Message::Event`]s whenever something
//! happened. One host is connected at a time; a newer one takes the place of an older one, whose
//! connection is closed. box-egress outlives the host: a host that comes back asks
//! [`Request::Status`] and hands over what is missing.
//!
//! Descriptors travel with the packet of their call (`SCM_RIGHTS`), in this order:
//! [`Request::Register`] brings `dns_udp`, `dns_tcp`, `proxy`, then one transparent listener
//! ([`Listeners::AllPorts`]) or two, http then https ([`Listeners::Two`]), then the box's `pidfd`.
//! No other call brings any, but for the body file of a long packet, see [`packet`].
//!
//! A secret is never part of a type here. The calls that bring one
//! ([`Request::Configure`] the CA's key, [`Request::AddCredential`] the credential) carry it as
//! the packet's appendix, which is wiped by whoever holds the buffer.

pub mod entry;
pub mod github;
pub mod login;
pub mod name;
pub mod network;
pub mod packet;
pub mod path;
pub mod policy;
mod reason;
pub mod traffic;
pub mod upstream;
pub mod usage;

pub use entry::{Entry, EntryError, PrivateEntry, RequestPattern};
pub use github::GithubScope;
pub use login::{LoginState, Logins};
pub use name::{HostName, HostNameError, HostPattern, HostPatternError};
pub use network::{Network, NetworkError};
pub use policy::{Policy, Verdict};
pub use reason::Reason;
pub use upstream::{SecureResolver, UpstreamProxy};

use crate::BoxId;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Version of this protocol. Raised when an older peer could misread a newer one.
pub const PROTOCOL: u32 = 2;
/// Longest placeholder, and longest id of a credential.
pub const PLACEHOLDER_BYTES_MAX: usize = 512;
/// A shorter placeholder could be guessed or be part of ordinary text.
pub const PLACEHOLDER_BYTES_MIN: usize = 20;
/// Longest secret accepted.
pub const SECRET_BYTES_MAX: usize = 64 << 10;
/// Placeholders one box can have.
pub const BINDINGS_MAX: usize = 64;

/// A request with its number; the answer carries the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    pub seq: u64,
    pub request: Request,
}

/// What the host asks of box-egress.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Request {
    /// First on every connection. Answer: [`Answer::Welcome`].
    Hello { build: String, protocol: u32 },
    /// Replaces the whole configuration. Appendix: the CA's private key, PEM, PKCS#8; empty when
    /// `ca_cert_pem` is absent; then the proxy's `user:password`, as many bytes as
    /// [`UpstreamProxy::login_bytes`] says. Answer: [`Answer::Done`].
    Configure(Configuration),
    /// A box's sockets and all that holds for it. A box registered before under the same id is
    /// replaced: its listeners and connections are closed. Brings descriptors. Answer: `Done`.
    Register(Registration),
    /// Holds from the next decision on; open connections the new policy refuses are closed.
    SetPolicy { box_id: BoxId, policy: Policy },
    /// Closes the box's listeners and connections and forgets its placeholders.
    Unregister { box_id: BoxId },
    /// Adds a credential or replaces the one with this id. Appendix: the secret.
    AddCredential(CredentialSpec),
    /// Wipes the secret. Hosts bound to it stay intercepted and are refused
    /// ([`Reason::CredentialMissing`]), never tunnelled.
    RemoveCredential { credential: String },
    /// Answer: [`Answer::Credentials`].
    ListCredentials,
    /// Adds a placeholder to a box, or replaces the one with the same text.
    Bind { box_id: BoxId, binding: Binding },
    /// Takes a placeholder away.
    Unbind { box_id: BoxId, placeholder: String },
    /// What would happen to a connection, through the same decision. Nothing is resolved or
    /// dialled. Answer: [`Answer::Checked`].
    Check {
        box_id: BoxId,
        host: String,
        port: u16,
        /// Judged as well, on a host that is opened up.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked: Option<AskedRequest>,
        /// Judged as if the name led there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        address: Option<IpAddr>,
    },
    /// A person who was asked lets connections of a box to this host and port through: those that
    /// wait, else the next within a quarter of an hour; others follow for a minute.
    AllowOnce {
        box_id: BoxId,
        host: HostName,
        port: u16,
    },
    /// What box-egress holds. Answer: [`Answer::Status`].
    Status,
    /// Ends box-egress once the answer is sent: no box has a way out then.
    Shutdown,
    /// What logins made inside boxes are sealed with from now on. Appendix: 32 bytes. Answer:
    /// `Done`.
    LoginKey,
    /// Logins of a running box that could not be opened when it was registered; what it has of
    /// the same kind stays. Answer: `Done`.
    RestoreLogins {
        box_id: BoxId,
        logins: Vec<LoginState>,
    },
    /// Wipes a box's logins of a kind, or all of them.
    ForgetLogins { box_id: BoxId, kind: Option<String> },
    /// Every name of a box with its fake address. Answer: [`Answer::Map`].
    Map { box_id: BoxId },
}

/// What holds for every box.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Configuration {
    /// Name servers, asked in this order. Nothing else is ever asked: no hosts file, no search
    /// list. They may be private or loopback addresses.
    pub resolvers: Vec<SocketAddr>,
    /// The certificates upstream servers of intercepted hosts are judged by: the system's.
    pub roots_pem: String,
    /// Added to `roots_pem` (setting `egress.extra_roots`).
    #[serde(default)]
    pub extra_roots_pem: String,
    /// The deployment's CA. Absent: hosts of a credential are refused ([`Reason::NoCa`]).
    pub ca_cert_pem: Option<String>,
    /// Asked instead of `resolvers`, if there are any; those then only find the proxy.
    #[serde(default)]
    pub secure_resolvers: Vec<SecureResolver>,
    /// The proxy every connection to a host is made through.
    #[serde(default)]
    pub proxy: Option<UpstreamProxy>,
}

/// A request as [`Request::Check`] asks about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedRequest {
    pub method: String,
    /// Without its query.
    pub path: String,
    /// A ref it would change, where the request is a push of git's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push: Option<AskedPush>,
}

/// What a push would do to one ref.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedPush {
    /// Whole, as `refs/heads/main`.
    pub name: String,
    pub how: PushHow,
}

/// How a push changes a ref.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PushHow {
    /// Made, or moved forward.
    Update,
    /// Moved wherever.
    Force,
    Delete,
}

/// A box as box-egress gets to know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    pub box_id: BoxId,
    pub policy: Policy,
    #[serde(default)]
    pub bindings: Vec<Binding>,
    /// Names the box has learned before, with their fake addresses: from [`Event::Mapped`] or
    /// [`Answer::Map`]. Append-only for the life of a box, saved with its snapshots.
    #[serde(default)]
    pub map: Vec<MappedName>,
    /// Logins made inside earlier, as [`Event::LoggedIn`] or [`BoxState`] told them. One that
    /// cannot be opened is left out.
    #[serde(default)]
    pub logins: Vec<LoginState>,
    pub listeners: Listeners,
}

/// Which transparent listeners come with a [`Registration`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Listeners {
    /// One `IP_TRANSPARENT` listener for every port of the range.
    AllPorts,
    /// `0.0.0.0:80`, then `0.0.0.0:443`.
    Two,
}

impl Listeners {
    /// How many descriptors a registration brings.
    pub fn descriptors(self) -> usize {
        match self {
            Self::AllPorts => 5,
            Self::Two => 6,
        }
    }
}

/// A name and the address that stands for it in one box.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappedName {
    pub name: HostName,
    pub addr: Ipv4Addr,
}

/// A placeholder of one box: what the box sends where the credential belongs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// [`PLACEHOLDER_BYTES_MIN`] to [`PLACEHOLDER_BYTES_MAX`] visible ASCII characters, unlike
    /// any other of the box.
    pub placeholder: String,
    /// Id of the credential. It may come later; until then `hosts` are refused.
    pub credential: String,
    /// Hosts that are intercepted for this box because of the binding, on port 443. The secret
    /// goes to those of them that the credential names as well.
    pub hosts: Vec<HostName>,
    /// What may be written at GitHub's hosts with it; absent there: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub github: Option<GithubScope>,
}

/// A credential without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CredentialSpec {
    /// Chosen by the host; 1 to [`PLACEHOLDER_BYTES_MAX`] characters.
    pub id: String,
    /// `claude`, `github`, …; shown, never judged.
    pub kind: String,
    /// Where the secret may be sent, on port 443, over TLS with a certificate that holds.
    pub hosts: Vec<HostName>,
    /// Where in a request the placeholder is looked for. At least one.
    pub carried: Vec<Carriage>,
}

/// How a request carries a credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "in", rename_all = "snake_case")]
pub enum Carriage {
    /// `authorization: Bearer <it>`
    Bearer,
    /// `authorization: Basic base64(user:<it>)` or `base64(<it>:)`
    Basic,
    /// The whole value of this header, such as `x-api-key`.
    Header { name: String },
    /// The whole value of this query parameter, such as `key`.
    Query { name: String },
}

/// What box-egress sends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case")]
pub enum Message {
    Answer { seq: u64, answer: Answer },
    Event { event: Event },
}

/// The answer to a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    Welcome(Welcome),
    Done,
    Credentials {
        credentials: Vec<CredentialState>,
    },
    Checked(Checked),
    Status(Status),
    Map {
        map: Vec<MappedName>,
    },
    /// The call was not carried out. `why` is lower case, no full stop, and holds no secret.
    Refused {
        why: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    pub build: String,
    pub protocol: u32,
    pub pid: u32,
    /// Whether a [`Configuration`] is there.
    pub configured: bool,
}

/// Answer to [`Request::Check`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    pub verdict: Verdict,
    /// Whether TLS to this host would be opened up.
    pub intercepted: bool,
    /// What it still depends on, or why it is refused and what would allow it: one line, or nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// Answer to [`Request::Status`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    pub build: String,
    pub pid: u32,
    pub configured: bool,
    /// Whether hosts of a credential can be intercepted.
    pub has_ca: bool,
    pub boxes: Vec<BoxState>,
    pub credentials: Vec<CredentialState>,
    /// Boxes that are not registered and whose logins are kept.
    #[serde(default)]
    pub parked: Vec<BoxId>,
    /// Events thrown away so far because no host fetched them.
    pub events_lost: u64,
}

/// A box as box-egress knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoxState {
    pub box_id: BoxId,
    pub policy: Policy,
    pub bindings: Vec<Binding>,
    /// Open connections.
    pub connections: u32,
    /// Names in its map.
    pub names: u32,
    pub refused: u64,
    /// Logins made inside.
    #[serde(default)]
    pub logins: Vec<LoginState>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CredentialState {
    #[serde(flatten)]
    pub spec: CredentialSpec,
    /// Whether the secret is there.
    pub present: bool,
    /// Placeholders bound to it.
    pub bound: u32,
}

/// Something that happened. Kept in a bounded queue until a host takes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The box learned a name. To be kept for [`Registration::map`].
    Mapped {
        box_id: BoxId,
        name: HostName,
        addr: Ipv4Addr,
    },
    Refused(Refusal),
    /// A connection to a host that is not listed waits for a person ([`policy::Unlisted::Ask`]).
    Asked {
        box_id: BoxId,
        host: HostName,
        port: u16,
        at_ms: i64,
    },
    /// A connection that went through is over.
    Passed(Passed),
    /// A connection is open: new, or more went through it.
    Open(traffic::Open),
    /// What looks like theft or a scan.
    Signal(traffic::Signal),
    /// A model answered, and what that cost.
    Used(usage::ModelUse),
    /// An alarm: a box sent the placeholder of another box, or its own to a host it does not
    /// belong to. The request was refused.
    ForeignPlaceholder {
        box_id: BoxId,
        host: HostName,
        belongs_to: BoxId,
        at_ms: i64,
    },
    /// Somebody logged in inside the box, or a login's tokens were renewed. To be kept for
    /// [`Registration::logins`]; replaces what was kept of the same kind.
    LoggedIn {
        box_id: BoxId,
        login: LoginState,
    },
    /// A host sent the credential back; it was replaced by the placeholder.
    SecretReflected {
        box_id: BoxId,
        host: HostName,
        at_ms: i64,
    },
    /// The box ended; its sockets are closed, its state forgotten.
    BoxGone {
        box_id: BoxId,
    },
    /// So many events were thrown away since the last that was sent.
    Lost {
        count: u64,
    },
}

/// A connection that went through, once it is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passed {
    pub box_id: BoxId,
    pub host: HostName,
    pub port: u16,
    /// What the policy went by, as [`policy::Rule`] writes itself; `once` for a person's answer.
    pub rule: String,
    /// The credential that was used on it, by its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// As the box saw them: for TLS that was opened up, its own side of it.
    pub sent_bytes: u64,
    pub received_bytes: u64,
    pub began_at_ms: i64,
    pub ended_at_ms: i64,
    /// [`traffic::Open::connection`] of those this is about; none from older builds.
    #[serde(default)]
    pub connections: Vec<u64>,
    /// How many connections that carried something this is about: more than one when there are too
    /// many to be told one by one; 0 when a connection only ended.
    #[serde(default = "traffic::once")]
    pub times: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entrance: Option<traffic::Entrance>,
    /// The last address that was connected to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<SocketAddr>,
    /// How long they were open, added up.
    #[serde(default)]
    pub open_ms: u64,
    /// Requests, where they were read; [`traffic::EXCHANGES_MAX`] kinds at most.
    #[serde(default)]
    pub exchanges: Vec<traffic::Exchange>,
}

/// A connection or request that did not go through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    pub box_id: BoxId,
    /// What the box asked for: a name, an address, or empty where it named nothing.
    pub host: String,
    /// 0 where the box named none, and for a look-up of a name.
    pub port: u16,
    pub reason: Reason,
    /// The entry of the policy that decided, as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// UTC, milliseconds since 1970.
    pub at_ms: i64,
    /// How often, when there are too many to be told one by one.
    #[serde(default = "traffic::once")]
    pub times: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entrance: Option<traffic::Entrance>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slug_of_a_reason_is_its_name_on_the_wire() {
        for reason in [
            Reason::NoPolicy,
            Reason::SniMismatch,
            Reason::ForeignCredential,
        ] {
            assert_eq!(
                serde_json::to_string(&reason).unwrap(),
                format!("\"{}\"", reason.slug())
            );
        }
    }

    #[test]
    fn call_survives_the_wire() {
        let call = Call {
            seq: 7,
            request: Request::Bind {
                box_id: BoxId::from_random([1; 10]),
                binding: Binding {
                    placeholder: "sk-ant-oat01-placeholder".into(),
                    credential: "claude:default".into(),
                    hosts: vec![HostName::parse("api.example.com").unwrap()],
                    github: None,
                },
            },
        };
        let text = serde_json::to_string(&call).unwrap();
        assert_eq!(serde_json::from_str::<Call>(&text).unwrap(), call);
    }
}
