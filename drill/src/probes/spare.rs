//! A box of a probe's own, for what would end or change the two that are attacked.

use crate::{Attempt, Place, Ran, Stage, StageError};
use std::time::Duration;

const COMMAND_TIME_MAX: Duration = Duration::from_secs(20);

/// Gone with its files when it is dropped.
pub(super) struct Spare<'a> {
    stage: &'a dyn Stage,
    name: &'static str,
}

impl<'a> Spare<'a> {
    /// A box of the profile under attack, and how its making went.
    pub(super) fn new(
        stage: &'a dyn Stage,
        name: &'static str,
        options: &[&str],
    ) -> Result<(Self, Attempt), StageError> {
        let words = ["new", name, "--net", "locked"];
        let made = stage.verb(&[&words[..], stage.facts().options(), options].concat())?;
        Ok((Self { stage, name }, made))
    }

    /// One that another verb makes, such as a copy.
    pub(super) fn made_by(
        stage: &'a dyn Stage,
        name: &'static str,
        verb: &[&str],
    ) -> Result<(Self, Attempt), StageError> {
        let made = stage.verb(verb)?;
        Ok((Self { stage, name }, made))
    }

    pub(super) fn shell(&self, line: &str) -> Result<Ran, StageError> {
        let words = ["exec", self.name, "--", "sh", "-c", line];
        self.stage.run(Place::Verb, &words, COMMAND_TIME_MAX)
    }

    /// A shell line in it; it worked when it ended with 0.
    pub(super) fn attempt(&self, line: &str) -> Result<Attempt, StageError> {
        let ran = self.shell(line)?;
        Ok(Attempt {
            what: format!("in `{}`: {line}", self.name),
            worked: ran.code == 0,
            saw: format!("{} {} {}", ran.code, ran.stdout.trim(), ran.stderr.trim()),
        })
    }

    /// Removes it now, and says how that went.
    pub(super) fn remove(self) -> Result<Attempt, StageError> {
        self.stage.verb(&["rm", self.name, "--force", "--now"])
    }
}

impl Drop for Spare<'_> {
    fn drop(&mut self) {
        // Removed already, or it goes with the drill.
        drop(self.stage.verb(&["rm", self.name, "--force", "--now"]));
    }
}
