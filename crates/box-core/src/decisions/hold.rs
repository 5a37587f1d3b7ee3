//! How long a permission waits for a person, and what then (C92).

use crate::settings::Settings;

/// What becomes of a permission that nobody answers. It is never approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// It waits.
    Forever,
    /// It is denied: by an option of its own that says no, else by taking it away.
    ThenDeny { after_ms: i64 },
}

/// `[decisions] permission_fallback`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Fallback {
    #[default]
    Hold,
    Deny,
}

impl Fallback {
    pub fn word(self) -> &'static str {
        match self {
            Self::Hold => "hold",
            Self::Deny => "deny",
        }
    }

    /// # Errors
    /// What it should be.
    pub fn parse(word: &str) -> Result<Self, String> {
        match word {
            "hold" => Ok(Self::Hold),
            "deny" => Ok(Self::Deny),
            other => Err(format!("it is `{other}`, not `hold` or `deny`")),
        }
    }
}

impl Hold {
    pub fn of(settings: &Settings) -> Self {
        match settings.permission_fallback.value {
            Fallback::Hold => Self::Forever,
            Fallback::Deny => Self::ThenDeny {
                after_ms: i64::from(settings.permission_hold.value) * 60_000,
            },
        }
    }
}
