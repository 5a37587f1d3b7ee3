//! Tokens of programs: what a script, a monitor or an editor shows instead of a browser's cookie
//! (D29). A token is shown once, when it is made, and kept as a hash only.

use crate::{BoxName, Owner};
use serde::{Deserialize, Serialize};

/// What every token begins with, so that one that lies about is found and known.
pub const TOKEN_PREFIX: &str = "box_token_";
/// Longest life of a token, days.
pub const TOKEN_DAYS_MAX: u32 = 366;
/// Life of a token whose maker says nothing, days.
pub const TOKEN_DAYS: u32 = 90;
/// Longest label of a token, characters.
pub const TOKEN_LABEL_CHARS_MAX: usize = 60;
/// First protocol of an ACP client's WebSocket (C122); the second is `bearer.<token>`.
pub const ACP_PROTOCOL: &str = "acp.v1";

/// What a token lets its holder do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TokenScope {
    /// Looks at everything its maker sees, and changes nothing.
    Read,
    /// All its maker may do, but for letting others in.
    Full,
    /// Speaks ACP to one box, and nothing else.
    Acp,
    /// Reads `/metrics`, and nothing else.
    Metrics,
}

impl TokenScope {
    pub const ALL: [Self; 4] = [Self::Read, Self::Full, Self::Acp, Self::Metrics];

    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Full => "full",
            Self::Acp => "acp",
            Self::Metrics => "metrics",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.word() == word)
    }
}

/// A token that is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TokenAsk {
    /// What it is for, 1 to 60 characters.
    #[cfg_attr(
        test,
        schemars(
            length(min = 1, max = 60),
            regex(pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")
        )
    )]
    pub label: String,
    pub scope: TokenScope,
    /// The box it is for: needed with `acp`, nothing else takes it.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub name: Option<BoxName>,
    /// How long it lives, 1 to 366 days; absent: 90.
    #[serde(default)]
    #[cfg_attr(test, ts(optional), schemars(range(min = 1, max = 366)))]
    pub days: Option<u32>,
}

/// A token as it is listed: nobody is told the token itself again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct TokenInfo {
    /// Public; revokes it.
    pub id: String,
    pub owner: Owner,
    pub label: String,
    pub scope: TokenScope,
    /// The box it is for.
    pub name: Option<BoxName>,
    pub made_at_ms: i64,
    /// Absent: it was never shown.
    pub seen_at_ms: Option<i64>,
    pub ends_at_ms: i64,
}

/// Newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Tokens {
    pub tokens: Vec<TokenInfo>,
}

/// A token, the one time it is shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct NewToken {
    pub token: String,
    pub info: TokenInfo,
    /// Where it is shown: of `acp` the WebSocket, of the others what their paths begin with.
    pub url: String,
}

/// Without the token: whoever has it is let in.
impl std::fmt::Debug for NewToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewToken")
            .field("info", &self.info)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}
