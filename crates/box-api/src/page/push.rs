//! Telling a browser what happens while nobody looks (C110–C117), and the list of what is on here.

use super::Tint;
use serde::{Deserialize, Serialize};

/// Longest address of a subscription at a push service.
pub const PUSH_ENDPOINT_BYTES_MAX: usize = 2048;

/// Who is told, and what a browser needs to be told too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct PushState {
    /// The host's key for subscriptions (RFC 8292 §3.2: an uncompressed point of P-256, base64url),
    /// once there is one.
    pub key: Option<String>,
    /// The caller's browsers that are told, newest first.
    pub devices: Vec<PushDevice>,
    /// The browser's own sign-in.
    pub own: String,
    /// How long a turn must be over before that is told, seconds (C112).
    pub settle_s: u32,
}

/// The key subscriptions are made with; the first who asks makes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct PushKey {
    pub key: String,
}

/// A subscription as a browser made it (`PushSubscription`).
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[expect(
    missing_debug_implementations,
    reason = "whoever has it can write to the browser"
)]
pub struct PushAsk {
    pub endpoint: String,
    /// The browser's public key, base64url.
    pub p256dh: String,
    /// The browser's authentication secret, base64url.
    pub auth: String,
    /// Only the names of the box and the thread are told, nothing of what was said (D28).
    #[serde(default)]
    pub names_only: bool,
}

/// A browser that is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct PushDevice {
    pub sign_in: String,
    /// What the browser calls itself; it may lie.
    pub agent: String,
    /// The push service it is reached through.
    pub service: String,
    pub names_only: bool,
    pub made_at_ms: i64,
    /// When a message was last taken by its push service.
    pub told_at_ms: Option<i64>,
    /// Messages that are on their way.
    pub waiting: u32,
    /// Why the last one did not get there.
    pub problem: Option<String>,
}

/// What became of a message that was sent as a test, hop by hop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct PushTested {
    pub hops: Vec<PushHop>,
    /// What the notification is called, by which the page finds out that it was shown.
    pub tag: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct PushHop {
    pub what: String,
    pub tint: Tint,
    pub text: String,
}

/// What is on here and what is not, for whoever begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Checklist {
    pub checks: Vec<Check>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Check {
    pub what: String,
    pub tint: Tint,
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The kind of account that can be given here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<String>,
}

/// A token for an agent's account. It goes to box-egress and is in no answer.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[expect(missing_debug_implementations, reason = "it holds a secret")]
pub struct LoginAsk {
    pub kind: String,
    pub token: String,
}
