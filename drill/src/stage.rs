//! The boxes under attack, as probes see them.

use crate::answer::Answer;
use crate::report::Attempt;
use box_api::control::{Limits, Profile};
use std::time::Duration;

/// Longest a probe's command may run.
const COMMAND_TIME_MAX: Duration = Duration::from_secs(20);

/// Longest a probe's verb may take.
const VERB_TIME_MAX: Duration = Duration::from_secs(30);

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
    /// The owner's own hands: the command is a verb of `box` with its words.
    Verb,
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

    /// Whether the drill is to end before it is through.
    fn is_stopped(&self) -> bool;
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
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and any of them goes with any other"
)]
pub struct Facts {
    pub engine: String,
    pub profile: Profile,
    /// Whether the boxes may hold containers.
    pub nested: bool,
    pub limits: Limits,
    /// The program of probes, by its path inside a box and outside.
    pub program_inside: String,
    pub program_outside: String,
    /// Process ids as the machine sees them.
    pub host_pid: u32,
    pub egress_pid: u32,
    pub target_pid: u32,
    pub sibling_pid: u32,
    /// Whether the drill, and so the host, is root of the machine. An ordinary user's controls can show
    /// no more than that user may.
    pub of_root: bool,
    /// Whether the boxes have one id, so that nobody in them can become somebody else.
    pub one_id: bool,
    /// How limits are held here, as `box info` says it.
    pub limits_held_by: String,
    /// A folder of the machine for probes to write to; verbs are spoken in it.
    pub scratch: String,
    /// Host paths a box must not reach.
    pub control_socket: String,
    pub data_dir: String,
    /// Host paths of the boxes' workspaces.
    pub target_workspace: String,
    pub sibling_workspace: String,
    /// Host path of the socket process 1 of the target listens on.
    pub guest_socket: String,
    /// A word in the environment of the host, and of every verb that speaks to it.
    pub host_word: String,
    /// A line of the deployment's private key.
    pub ca_key_line: String,
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
    /// An address of the machine in the drill's namespace, with listeners on TCP 80 and 7777; its
    /// loopback listens on 7778.
    pub host_v4: String,
    /// The abstract name of a socket the machine listens on (unix(7)).
    pub machine_socket: String,
    /// Names the boxes may reach that lead to the machine, its loopback and a metadata service.
    pub inward_names: Vec<String>,
}

impl Facts {
    /// The options of `box new` for a box like those under attack.
    pub fn options(&self) -> &'static [&'static str] {
        match (self.profile, self.nested) {
            (Profile::Locked, _) => &["--profile", "locked"],
            (Profile::Root, false) => &["--profile", "root"],
            (Profile::Root, true) => &["--profile", "root", "--nested"],
        }
    }
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
            Place::Outside | Place::Verb => &self.facts().program_outside,
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
        Ok(self.seen(
            place,
            Attempt {
                what: words.join(" "),
                worked: answer.is_ok(),
                saw: answer.to_string(),
            },
        ))
    }

    /// A verb of the product as an attempt: it worked when it ended with 0.
    ///
    /// # Errors
    /// As [`Stage::run`].
    pub fn verb(&self, words: &[&str]) -> Result<Attempt, StageError> {
        let ran = self.run(Place::Verb, words, VERB_TIME_MAX)?;
        Ok(Attempt {
            what: format!("box {}", words.join(" ")),
            worked: ran.code == 0,
            saw: format!("{} {}", ran.code, ran.stderr.trim()),
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
        Ok(self.seen(
            place,
            Attempt {
                what: line.to_owned(),
                worked: ran.code == 0,
                saw: saw.trim().to_owned(),
            },
        ))
    }

    /// What the machine refuses an ordinary user outside as well shows nothing about a box; that the
    /// act itself works, root's drill shows.
    fn seen(&self, place: Place, attempt: Attempt) -> Attempt {
        if place == Place::Outside && !self.facts().of_root && !attempt.worked {
            attempt.for_root_alone()
        } else {
            attempt
        }
    }
}
