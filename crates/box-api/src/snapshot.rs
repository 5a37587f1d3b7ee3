//! Snapshots: how they are named, what they mean, how their copies are made.

use crate::id::NameError;
use serde::{Deserialize, Serialize};
use std::fmt;

const LABEL_CHARS_MAX: usize = 63;

/// What a person calls a snapshot of one box: `[a-z0-9][a-z0-9._-]{0,62}` (B9).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema), ts(type = "string"))]
#[cfg_attr(test, schemars(extend("pattern" = r"^[a-z0-9][a-z0-9._-]{0,62}$")))]
#[serde(try_from = "String", into = "String")]
pub struct Label(String);

impl Label {
    /// # Errors
    /// [`NameError::Label`] when the text is malformed.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let starts_well = text.chars().next().is_some_and(plain);
        let goes_on_well = text
            .chars()
            .all(|c| plain(c) || matches!(c, '-' | '_' | '.'));
        if starts_well && goes_on_well && text.len() <= LABEL_CHARS_MAX {
            Ok(Self(text.to_owned()))
        } else {
            Err(NameError::Label)
        }
    }

    /// The mark of a fresh box (B14).
    pub fn pristine() -> Self {
        Self("pristine".to_owned())
    }

    /// The mark of a box whose set-up was seen to succeed (B18).
    pub fn bootstrapped() -> Self {
        Self("bootstrapped".to_owned())
    }

    /// `<kind>-<epoch seconds>`, as a snapshot is called when nobody named it (B9).
    pub fn at(kind: &str, at_ms: i64) -> Self {
        Self(format!("{kind}-{}", at_ms.div_euclid(1000)))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Label> for String {
    fn from(label: Label) -> Self {
        label.0
    }
}

impl TryFrom<String> for Label {
    type Error = NameError;
    fn try_from(text: String) -> Result<Self, NameError> {
        Self::parse(&text)
    }
}

impl std::str::FromStr for Label {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::parse(text)
    }
}

/// Why a snapshot was taken. Only its presence means something, never its absence (B21).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SnapshotKind {
    /// A person asked for it.
    Manual,
    /// Taken of a fresh box, before anything of its owner ran (B14).
    Pristine,
    /// Taken after its set-up command was seen to succeed (B18).
    Bootstrapped,
    /// Taken before a restore, so that the restore can be undone.
    BeforeRestore,
    /// Taken before a turn.
    BeforeTurn,
}

/// How an engine makes a copy of a box's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CopyMethod {
    /// One copy-on-write snapshot of the whole box; constant in size.
    Subvolume,
    /// File by file, sharing their content; grows with the number of files.
    Reflink,
    /// Every byte is copied.
    Full,
}

impl CopyMethod {
    /// As `box doctor` names it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Subvolume => "copy-on-write subvolumes (btrfs)",
            Self::Reflink => "copy-on-write files (reflink)",
            Self::Full => "full copies",
        }
    }
}

/// A snapshot as clients see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub struct SnapshotInfo {
    pub label: Label,
    pub kind: SnapshotKind,
    pub created_at_ms: i64,
    /// Size of its files, shared content counted in full.
    pub bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_checked() {
        for good in ["pristine", "manual-1790000000", "v1.2_rc-3", "0"] {
            assert!(Label::parse(good).is_ok(), "{good}");
        }
        let long = "a".repeat(64);
        for bad in ["", ".", "..", "-x", "_x", "A", "a/b", "a b", "ä", &long] {
            assert_eq!(Label::parse(bad), Err(NameError::Label), "{bad}");
        }
    }

    #[test]
    fn a_label_nobody_chose_says_when() {
        assert_eq!(
            Label::at("manual", 1_790_000_000_999).as_str(),
            "manual-1790000000"
        );
    }
}
