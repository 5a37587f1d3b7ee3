//! How a failure is told: what went wrong, which thing, and what to do about it.

use serde::{Deserialize, Serialize};

/// What kind of failure it is; the exit code follows from it alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    /// It was tried and did not work.
    Failed,
    /// The request itself was wrong.
    Usage,
    /// A policy or a limit says no.
    Refused,
    /// The engine could not do its part.
    Engine,
}

impl ProblemKind {
    /// 1 went wrong, 2 asked wrong, 3 refused, 125 engine.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Refused => 3,
            Self::Engine => 125,
        }
    }
}

/// A failure as it crosses the wire (fields after RFC 9457). Never holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[error("{title}")]
pub struct Problem {
    /// A stable slug for programs, such as `box-not-found`.
    #[serde(rename = "type")]
    pub slug: String,
    pub kind: ProblemKind,
    /// What could not be done, and to which thing. Lower case, no full stop.
    pub title: String,
    /// The cause, when it is known and adds something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// What the person can do now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Problem {
    pub fn new(kind: ProblemKind, slug: &str, title: impl Into<String>) -> Self {
        Self {
            slug: slug.to_owned(),
            kind,
            title: title.into(),
            cause: None,
            hint: None,
        }
    }

    #[must_use]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "call sites hand over an error they are done with"
    )]
    pub fn caused_by(mut self, cause: impl ToString) -> Self {
        self.cause = Some(cause.to_string());
        self
    }

    #[must_use]
    pub fn hinted(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
