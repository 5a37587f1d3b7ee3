//! The caller's own git, run on the caller's own repository.

use crate::child;
use crate::complaint::Complaint;
use crate::inside::last_lines;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Where it is and what it works on must come from us, not from whoever started us (git(1), "The
/// Git Repository").
const NOT_INHERITED: [&str; 8] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_QUARANTINE_PATH",
    "GIT_WORK_TREE",
];

/// Settings under which git runs nothing a repository names: no hook, no monitor, no collector.
const QUIET: [&str; 6] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "advice.addEmbeddedRepo=false",
];

/// git in one place.
#[derive(Debug, Clone)]
pub(crate) struct Git {
    folder: PathBuf,
    variables: Vec<(&'static str, OsString)>,
    settings: Vec<String>,
}

impl Git {
    pub(crate) fn at(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            variables: Vec::new(),
            settings: QUIET.map(str::to_owned).to_vec(),
        }
    }

    pub(crate) fn with_variable(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    pub(crate) fn with_setting(mut self, setting: &str) -> Self {
        self.settings.push(setting.to_owned());
        self
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// git with these words, not yet started.
    pub(crate) fn command<W: AsRef<OsStr>>(&self, words: &[W]) -> Command {
        let mut command = child::command("git");
        for name in NOT_INHERITED {
            command.env_remove(name);
        }
        command
            .current_dir(&self.folder)
            .env("LC_ALL", "C")
            .env("GIT_TERMINAL_PROMPT", "0")
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        command.args(words).stdin(Stdio::null());
        command
    }

    /// Runs it; the value is what it printed, without the last line end.
    ///
    /// # Errors
    /// That there is no git, or what it said.
    pub(crate) fn run<W: AsRef<OsStr>>(&self, words: &[W]) -> Result<String, Complaint> {
        let done = self.command(words).output().map_err(no_git)?;
        if done.status.success() {
            let said = String::from_utf8_lossy(&done.stdout);
            return Ok(said.trim_end_matches('\n').to_owned());
        }
        Err(failed(words, &done.stderr))
    }

    /// As [`Self::run`], where a failure is an answer: there is no such thing.
    ///
    /// # Errors
    /// That there is no git.
    pub(crate) fn ask<W: AsRef<OsStr>>(&self, words: &[W]) -> Result<Option<String>, Complaint> {
        let done = self.command(words).output().map_err(no_git)?;
        let said = String::from_utf8_lossy(&done.stdout);
        let said = said.trim_end_matches('\n').to_owned();
        Ok(done.status.success().then_some(said))
    }

    /// Starts it with a standard input that is ours.
    ///
    /// # Errors
    /// That there is no git.
    pub(crate) fn feed<W: AsRef<OsStr>>(&self, words: &[W]) -> Result<Child, Complaint> {
        self.command(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(no_git)
    }
}

fn no_git(error: impl ToString) -> Complaint {
    Complaint::failed("no-git", "could not run `git` on this machine")
        .caused_by(error)
        .hinted("install git")
}

/// What git said when it failed.
pub(crate) fn failed<W: AsRef<OsStr>>(words: &[W], stderr: &[u8]) -> Complaint {
    let verb = words.first().map(|word| word.as_ref().to_string_lossy());
    let title = format!("`git {}` failed", verb.unwrap_or_default());
    Complaint::failed("git", title).caused_by(last_lines(&String::from_utf8_lossy(stderr)))
}

/// An object's name: 40 or 64 hexadecimal digits, nothing else.
pub(crate) fn is_object_name(text: &str) -> bool {
    matches!(text.len(), 40 | 64)
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}
