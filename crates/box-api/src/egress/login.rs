//! Logins made inside a box: what becomes of the tokens a vendor hands out there.

use serde::{Deserialize, Serialize};

/// Longest sealed login, base64.
pub const SEALED_BYTES_MAX: usize = 256 << 10;
/// Logins one box can have; one more makes the oldest go.
pub const LOGINS_MAX: usize = 8;

/// What a box may do at the hosts where agents log in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Logins {
    /// Whoever logs in inside gets placeholders; the tokens stay in box-egress.
    #[default]
    Placeholder,
    /// The tokens go into the box as the vendor sent them (B6).
    Plain,
    /// Nobody logs in inside.
    Off,
}

impl Logins {
    /// As a person types it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Placeholder => "placeholder",
            Self::Plain => "plain",
            Self::Off => "off",
        }
    }

    /// # Errors
    /// What it should be.
    pub fn parse(text: &str) -> Result<Self, String> {
        let all = [Self::Placeholder, Self::Plain, Self::Off];
        let found = all.into_iter().find(|one| one.word() == text);
        found.ok_or_else(|| "`placeholder`, `plain` or `off`".to_owned())
    }
}

/// A login made inside a box, without its tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginState {
    /// `claude`, `codex`, `github`.
    pub kind: String,
    /// UTC, milliseconds since 1970.
    pub since_ms: i64,
    /// The tokens and their placeholders, sealed with the key of
    /// [`super::Request::LoginKey`]; base64. Absent where there is no key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<String>,
}
