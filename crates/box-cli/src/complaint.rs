//! How a verb fails: what it says on standard error, and the exit code.

use box_api::{Problem, ProblemKind};

/// What `exec` and `shell` answer when not the command but we failed.
pub(crate) const WE_FAILED: u8 = 125;
/// 128 + `SIGPIPE`, as a shell reports a reader that went away.
const READER_GONE: u8 = 141;

/// Why a verb ended early. Told once, by `verbs::main`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Complaint {
    /// Absent when there is nothing left to tell.
    problem: Option<Problem>,
    code: u8,
}

impl Complaint {
    /// It was tried and did not work.
    pub(crate) fn failed(slug: &str, title: impl Into<String>) -> Self {
        Problem::new(ProblemKind::Failed, slug, title).into()
    }

    /// The person asked for something that makes no sense.
    pub(crate) fn usage(slug: &str, title: impl Into<String>) -> Self {
        Problem::new(ProblemKind::Usage, slug, title).into()
    }

    /// This machine or the host cannot do it.
    pub(crate) fn engine(slug: &str, title: impl Into<String>) -> Self {
        Problem::new(ProblemKind::Engine, slug, title).into()
    }

    /// Whoever read our output went away: end without a word.
    pub(crate) fn reader_gone() -> Self {
        Self {
            problem: None,
            code: READER_GONE,
        }
    }

    #[must_use]
    pub(crate) fn caused_by(mut self, cause: impl ToString) -> Self {
        self.problem = self.problem.map(|problem| problem.caused_by(cause));
        self
    }

    #[must_use]
    pub(crate) fn hinted(mut self, hint: impl Into<String>) -> Self {
        self.problem = self.problem.map(|problem| problem.hinted(hint));
        self
    }

    pub(crate) fn code(&self) -> u8 {
        self.code
    }

    pub(crate) fn problem(&self) -> Option<&Problem> {
        self.problem.as_ref()
    }
}

impl From<Problem> for Complaint {
    fn from(problem: Problem) -> Self {
        let code = problem.kind.exit_code();
        Self {
            problem: Some(problem),
            code,
        }
    }
}
