//! The name of a durable process, chosen by the host.

use serde::{Deserialize, Serialize};
use std::fmt;

const NAME_CHARS_MAX: usize = 64;

/// Why a text is no process name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a process name has 1 to 64 characters of a-z, 0-9 and `-` and does not start with `-`")]
pub struct ProcessNameError;

/// `[a-z0-9][a-z0-9-]{0,63}`, unique in its box.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ProcessName(String);

impl ProcessName {
    /// # Errors
    /// [`ProcessNameError`] for anything else than `[a-z0-9][a-z0-9-]{0,63}`.
    pub fn parse(text: &str) -> Result<Self, ProcessNameError> {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let well_made = !text.is_empty() && !text.starts_with('-') && text.chars().all(fits);
        if well_made && text.len() <= NAME_CHARS_MAX {
            Ok(Self(text.to_owned()))
        } else {
            Err(ProcessNameError)
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ProcessName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<ProcessName> for String {
    fn from(name: ProcessName) -> Self {
        name.0
    }
}

impl TryFrom<String> for ProcessName {
    type Error = ProcessNameError;
    fn try_from(text: String) -> Result<Self, ProcessNameError> {
        Self::parse(&text)
    }
}
