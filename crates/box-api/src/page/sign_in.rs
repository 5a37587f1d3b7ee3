//! Who is behind a browser: pairing links and sign-ins (D9, D30).

use super::TokenAsk;
use crate::Owner;
use serde::{Deserialize, Serialize};

/// Longest a pairing link lives, milliseconds.
pub const LINK_MS_MAX: i64 = 10 * 60_000;

/// The code of a pairing link, taken from its fragment. It works once.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[expect(
    missing_debug_implementations,
    reason = "whoever has the code is let in"
)]
pub struct Pair {
    pub code: String,
}

/// What a browser gets for a code, beside the cookie.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[expect(
    missing_debug_implementations,
    reason = "whoever has the proof and the cookie is let in"
)]
pub struct PairedBrowser {
    pub me: Me,
    /// Shown with every request in `x-box-proof`, and as the second protocol of the WebSocket.
    pub proof: String,
}

/// Whom the host takes this browser for, and what it offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Me {
    /// Which build the host is; a page of another build offers to load itself again.
    pub build: String,
    pub protocol: u32,
    pub owner: Owner,
    pub tier: TierWord,
    /// This browser's own sign-in.
    pub sign_in: String,
    pub now_ms: i64,
}

/// What somebody may do (B60).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TierWord {
    /// Sees and touches everything.
    Admin,
    /// Sees and touches what is their own.
    Restricted,
}

/// A browser that was paired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct SignIn {
    /// Public; revokes it.
    pub id: String,
    pub owner: Owner,
    /// What the browser calls itself, shortened; it may lie.
    pub agent: String,
    pub made_at_ms: i64,
    pub seen_at_ms: i64,
    /// When it ends by itself.
    pub ends_at_ms: i64,
}

/// Newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct SignIns {
    pub sign_ins: Vec<SignIn>,
}

/// A link that pairs one browser; goes only over the control socket.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairingLink {
    /// Where the page is, without anything secret.
    pub url: String,
    /// Goes behind `#`, which no browser sends anywhere.
    pub code: String,
    pub ends_at_ms: i64,
}

impl PairingLink {
    /// As a person opens it.
    pub fn link(&self) -> String {
        format!("{}/pair#{}", self.url, self.code)
    }
}

/// Without the code: whoever has it is let in.
impl std::fmt::Debug for PairingLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PairingLink")
            .field("url", &self.url)
            .field("ends_at_ms", &self.ends_at_ms)
            .finish_non_exhaustive()
    }
}

/// A link that pairs another browser, as a page asks for it: shown once, as text or as a QR code.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[expect(
    missing_debug_implementations,
    reason = "whoever has the link is let in"
)]
pub struct NewLink {
    pub link: String,
    pub ends_at_ms: i64,
}

/// What is wanted of the page (`box ui`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "act", rename_all = "snake_case")]
pub enum PageAsk {
    /// A link for one browser.
    Link,
    /// Where the page is, and nothing else.
    Where,
    List,
    Revoke {
        id: String,
    },
    /// A token for a program; answered with it once.
    TokenAdd(TokenAsk),
    TokenList,
    TokenRevoke {
        id: String,
    },
}
