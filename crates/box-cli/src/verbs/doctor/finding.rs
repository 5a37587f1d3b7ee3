//! What was looked at, what was seen, and what would mend it.

use crate::output::Ink;
use serde::Serialize;

/// A package of the distribution that provides a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Package {
    pub(crate) name: &'static str,
    pub(crate) purpose: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Level {
    Good,
    /// Worth knowing; nothing depends on it.
    Note,
    /// It works, with less.
    Less,
    /// A package is missing without which the usual box cannot be made.
    Missing,
    /// A box could not run.
    Bad,
}

impl Level {
    pub(super) fn mark(self) -> (Ink, &'static str) {
        match self {
            Self::Good => (Ink::Green, "✓"),
            Self::Note => (Ink::Dim, "–"),
            Self::Less => (Ink::Yellow, "·"),
            Self::Missing | Self::Bad => (Ink::Red, "✗"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// For programs: stays the same from build to build.
    pub(crate) name: &'static str,
    pub(crate) level: Level,
    /// One line for a person.
    pub(crate) what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<String>,
    /// What to type or change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fix: Option<String>,
    #[serde(skip)]
    pub(crate) package: Option<Package>,
}

impl Finding {
    pub(super) fn new(name: &'static str, level: Level, what: impl Into<String>) -> Self {
        Self {
            name,
            level,
            what: what.into(),
            cause: None,
            fix: None,
            package: None,
        }
    }

    pub(super) fn good(name: &'static str, what: impl Into<String>) -> Self {
        Self::new(name, Level::Good, what)
    }

    #[must_use]
    pub(super) fn because(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    #[must_use]
    pub(super) fn mended_by(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// What lacks a package is mended by installing it.
    pub(super) fn missing(name: &'static str, package: Package) -> Self {
        let what = format!("{} is missing: it {}", package.name, package.purpose);
        let mut finding = Self::new(name, Level::Missing, what)
            .mended_by(format!("`sudo apt-get install {}`", package.name));
        finding.package = Some(package);
        finding
    }

    pub(super) fn lets_boxes_run(&self) -> bool {
        match self.level {
            Level::Good | Level::Note | Level::Less => true,
            Level::Missing | Level::Bad => false,
        }
    }
}
