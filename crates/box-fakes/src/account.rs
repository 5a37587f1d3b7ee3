//! Accounts of a test's own, for what an ordinary user does.
//!
//! They are made with useradd(8) in a copy of `/etc` that only the calling thread and what it starts
//! see; they are gone with them, whatever becomes of the test. Programs are run as them with
//! setpriv(1): cargo and the test itself stay root.

use crate::rig::private_mounts;
use anyhow::{Context as _, Result, bail};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;

/// The user's name; in its own `/etc` there is no other of ours.
const NAME: &str = "ordinary";

/// Whether the user has subordinate ids (subuid(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ids {
    /// 65,536 of them.
    Range,
    /// None: its own id is all it has.
    Own,
}

/// An ordinary user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    pub uid: u32,
    pub gid: u32,
    /// The first of its subordinate ids.
    pub first: Option<u32>,
}

impl Account {
    /// Gives the calling thread mounts of its own and makes the user there. `folder` is an empty
    /// folder anybody may walk through; the copy of `/etc` goes into it.
    ///
    /// # Errors
    /// Without root, `useradd` or `cp`.
    pub fn make(folder: &Path, ids: Ids) -> Result<Self> {
        private_mounts()?;
        let copy = folder.join("etc");
        run(program("cp").args(["--archive", "/etc"]).arg(&copy))?;
        rustix::mount::mount_bind(&copy, "/etc").context("could not lay the copy over /etc")?;
        let count = match ids {
            Ids::Range => 65_536,
            Ids::Own => 0,
        };
        let mut useradd = program("useradd");
        useradd.args(["--no-create-home", "--no-log-init", "--home-dir"]);
        useradd.arg(folder);
        for kind in ["SUB_UID_COUNT", "SUB_GID_COUNT"] {
            useradd.args(["--key", &format!("{kind}={count}")]);
        }
        run(useradd.arg(NAME))?;
        let fields = |file: &str| -> Result<Vec<String>> {
            let text = std::fs::read_to_string(file)?;
            let own = text
                .lines()
                .find(|line| line.split(':').next() == Some(NAME));
            Ok(own
                .unwrap_or_default()
                .split(':')
                .map(str::to_owned)
                .collect())
        };
        let known = fields("/etc/passwd")?;
        let number = |at: usize| known.get(at).and_then(|field| field.parse().ok());
        let (Some(uid), Some(gid)) = (number(2), number(3)) else {
            bail!("useradd made no `{NAME}`");
        };
        let first = fields("/etc/subuid")?
            .get(1)
            .and_then(|field| field.parse().ok());
        if first.is_some() != (ids == Ids::Range) {
            bail!("`{NAME}` has the subordinate ids {first:?}, wanted {ids:?}");
        }
        Ok(Self { uid, gid, first })
    }

    /// A program as this user, with its groups and none of root's rights.
    pub fn command(&self, path: impl AsRef<OsStr>) -> Command {
        let [setpriv, words @ ..] = self.words();
        let mut command = program(&setpriv);
        command.args(words).arg(path);
        command
    }

    /// What stands before the program and its arguments.
    pub fn words(&self) -> [String; 6] {
        [
            "setpriv".to_owned(),
            format!("--reuid={}", self.uid),
            format!("--regid={}", self.gid),
            "--init-groups".to_owned(),
            "--inh-caps=-all".to_owned(),
            "--".to_owned(),
        ]
    }

    /// Gives the user a tree whose files belong to ids 0–65535 of a box, as the user's own host would
    /// have them.
    ///
    /// # Errors
    /// What the system says.
    pub fn give_tree(&self, top: &Path) -> Result<()> {
        self.give_once(top, &mut HashSet::new())
    }

    /// A file with several names is met several times.
    fn give_once(&self, path: &Path, given: &mut HashSet<u64>) -> Result<()> {
        let found = std::fs::symlink_metadata(path)?;
        if !given.insert(found.ino()) {
            return Ok(());
        }
        let shift = |id: u32, own: u32| self.first.map_or(own, |first| first + id);
        let (uid, gid) = (shift(found.uid(), self.uid), shift(found.gid(), self.gid));
        std::os::unix::fs::lchown(path, Some(uid), Some(gid))?;
        if found.is_dir() {
            for entry in std::fs::read_dir(path)? {
                self.give_once(&entry?.path(), given)?;
            }
        }
        Ok(())
    }

    /// Gives the user a folder or a file.
    ///
    /// # Errors
    /// What the system says.
    pub fn give(&self, path: &Path) -> Result<()> {
        let given = std::os::unix::fs::lchown(path, Some(self.uid), Some(self.gid));
        given.with_context(|| format!("could not give away `{}`", path.display()))
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the programs that make users and become them"
)]
fn program(name: &str) -> Command {
    Command::new(name)
}

fn run(command: &mut Command) -> Result<()> {
    let output = command
        .output()
        .with_context(|| format!("could not start {command:?}"))?;
    if output.status.success() {
        return Ok(());
    }
    bail!(
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    )
}
