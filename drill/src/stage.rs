//! The boxes under attack, as probes see them.

use crate::answer::Answer;
use crate::report::Attempt;
use box_api::control::{Limits, Profile};
use std::time::Duration;

/// Longest a probe's command may run.
const COMMAND_TIME_MAX: Duration = Duration::from_secs(20);

/// Where a command of a probe runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The box under attack.
    Target,
    /// Another box of the same owner.
    Sibling,
    /// The machine itself, in the network namespace of the drill: where controls run that have to
    /// show that the thing attacked is there at all.
    Outside,
}

/// Two running boxes, an internet and a host to attack.
pub trait Stage: Sync {
    /// Runs a command and waits for it, `time_max` at the longest.
    ///
    /// # Errors
    /// [`StageError`] when it could not be run at all; a command that fails is no error.
    fn run(&self, place: Place, command: &[&str], time_max: Duration) -> Result<Ran, StageError>;

    fn facts(&self) -> &Facts;

    /// Whether the internet's name server was asked for a name with this in it.
    fn was_asked_upstream(&self, part: &str) -> bool;
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// Its code, or 128+n for a signal.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
}

/// The drill could not do what a probe asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("could not run {what}: {why}")]
pub struct StageError {
    pub what: String,
    pub why: String,
}

/// What a probe may know about what it attacks.
#[derive(Debug, Clone)]
pub struct Facts {
    pub engine: String,
    pub profile: Profile,
    pub limits: Limits,
    /// The program of probes, by its path inside a box and outside.
    pub program_inside: String,
    pub program_outside: String,
    /// Process ids as the machine sees them.
    pub host_pid: u32,
    pub egress_pid: u32,
    pub target_pid: u32,
    pub sibling_pid: u32,
    /// Host paths a box must not reach.
    pub control_socket: String,
    pub data_dir: String,
    /// Host path of the sibling's workspace.
    pub sibling_workspace: String,
    /// The drill's credential; no box may hold it.
    pub credential: String,
    /// What the boxes hold instead of it.
    pub target_placeholder: String,
    pub sibling_placeholder: String,
    pub internet: Internet,
}

/// What there is to reach; all of it answers when asked from outside.
#[derive(Debug, Clone)]
pub struct Internet {
    /// A name the boxes may reach, by http and https.
    pub allowed_name: String,
    /// A name nobody allowed, just as alive.
    pub refused_name: String,
    /// The name the drill's credential belongs to; answers 200 to the real one only.
    pub credential_name: String,
    /// Addresses of a server that answers on TCP 80, 443 and 8443 and on UDP 53 and 443.
    pub v4: String,
    pub v6: String,
    /// An address of the machine in the drill's namespace, with a listener on TCP 7777.
    pub host_v4: String,
}

impl dyn Stage + '_ {
    /// Runs a shell line.
    ///
    /// # Errors
    /// As [`Stage::run`].
    pub fn shell(&self, place: Place, line: &str) -> Result<Ran, StageError> {
        self.run(place, &["sh", "-c", line], COMMAND_TIME_MAX)
    }

    /// Lets the program of probes do one act.
    ///
    /// # Errors
    /// As [`Stage::run`], and when it printed no answer.
    pub fn act(&self, place: Place, words: &[&str]) -> Result<Answer, StageError> {
        let program = match place {
            Place::Target | Place::Sibling => &self.facts().program_inside,
            Place::Outside => &self.facts().program_outside,
        };
        let mut command = vec![program.as_str()];
        command.extend(words);
        let ran = self.run(place, &command, COMMAND_TIME_MAX)?;
        Answer::parse(&ran).map_err(|why| StageError {
            what: format!("`{}`", words.join(" ")),
            why,
        })
    }

    /// One act as an attempt: it worked when the program of probes says `ok`.
    ///
    /// # Errors
    /// As [`Stage::run`], and when it printed no answer.
    pub fn attempt(&self, place: Place, words: &[&str]) -> Result<Attempt, StageError> {
        let answer = self.act(place, words)?;
        Ok(Attempt {
            what: words.join(" "),
            worked: answer.is_ok(),
            saw: answer.to_string(),
        })
    }

    /// Several acts in one place.
    ///
    /// # Errors
    /// As [`Stage::run`], and when one printed no answer.
    pub fn attempts(&self, place: Place, acts: &[&[&str]]) -> Result<Vec<Attempt>, StageError> {
        acts.iter()
            .map(|words| self.attempt(place, words))
            .collect()
    }

    /// A shell line as an attempt: it worked when it ended with 0.
    ///
    /// # Errors
    /// As [`Stage::run`].
    pub fn shell_attempt(&self, place: Place, line: &str) -> Result<Attempt, StageError> {
        let ran = self.shell(place, line)?;
        let saw = format!("{} {} {}", ran.code, ran.stdout.trim(), ran.stderr.trim());
        Ok(Attempt {
            what: line.to_owned(),
            worked: ran.code == 0,
            saw: saw.trim().to_owned(),
        })
    }
}
