//! A step of making a box that did not work.

use std::borrow::Cow;
use std::fmt;
use std::io;

/// What could not be done and why. Reads `could not mount the workspace: permission denied (errno
/// 13)`.
#[derive(Debug)]
pub(crate) struct StepError {
    /// With its reason, where the reason came as text from inside the box.
    step: Cow<'static, str>,
    cause: Option<io::Error>,
}

impl StepError {
    pub(crate) fn new(step: impl Into<Cow<'static, str>>, cause: impl Into<io::Error>) -> Self {
        Self {
            step: step.into(),
            cause: Some(cause.into()),
        }
    }

    /// What the inside told, which is such a text already.
    pub(crate) fn told(text: &str) -> Self {
        let step = text.strip_prefix("could not ").unwrap_or(text).to_owned();
        Self {
            step: step.into(),
            cause: None,
        }
    }
}

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "could not {}", self.step)?;
        match &self.cause {
            None => Ok(()),
            Some(cause) => match cause.raw_os_error() {
                // Rust ends these with ` (os error 13)`.
                Some(number) => {
                    let text = cause.to_string().to_lowercase();
                    let text = text.split(" (os error").next().unwrap_or_default();
                    write!(f, ": {text} (errno {number})")
                }
                None => write!(f, ": {cause}"),
            },
        }
    }
}

/// The cause is part of the text, so it is not told a second time as a source.
impl std::error::Error for StepError {}

/// Names the step a system call belongs to.
pub(crate) trait Step<T> {
    fn step(self, step: impl Into<Cow<'static, str>>) -> Result<T, StepError>;
    fn step_with(self, step: impl FnOnce() -> String) -> Result<T, StepError>;
}

impl<T, E: Into<io::Error>> Step<T> for Result<T, E> {
    fn step(self, step: impl Into<Cow<'static, str>>) -> Result<T, StepError> {
        self.map_err(|cause| StepError::new(step, cause))
    }

    fn step_with(self, step: impl FnOnce() -> String) -> Result<T, StepError> {
        self.map_err(|cause| StepError::new(step(), cause))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn a_failure_reads_as_one_line() {
        let error = StepError::new("mount the workspace", Errno::ACCESS);
        assert_eq!(
            error.to_string(),
            "could not mount the workspace: permission denied (errno 13)"
        );
        assert_eq!(
            StepError::told(&error.to_string()).to_string(),
            error.to_string()
        );
    }
}
