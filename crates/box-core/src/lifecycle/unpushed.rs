//! Looks for commits that exist only in a box, before it is removed (D33).
//!
//! git runs inside the box, never on the host: a repository can name programs to be run. A box that
//! is stopped is started for it, without a way out.

use super::claim::{Claim, Wish, claim, settle};
use super::{files, spec_of};
use crate::boxes::{self, BoxRecord};
use crate::host::Host;
use crate::inside::{self, Inside, InsideError};
use crate::store::StoreError;
use box_api::control::BoxState;
use box_api::{BoxId, BoxName};
use box_runtime::{RuntimeError, fault};
use std::sync::Arc;
use std::time::Duration;

const LOOK_WAIT: Duration = Duration::from_secs(10);
/// Repositories named in one refusal.
const NAMED_MAX: usize = 3;
const NAME_CHARS_MAX: usize = 80;

/// Prints `<commits> <folder>` for each repository with commits no remote has, `? <folder>` where
/// git cannot tell. Hooks, file system monitors and filters are not run: `rev-list` reads commits
/// alone.
const SCRIPT: &str = r#"
for dot in .git */.git */*/.git */*/*/.git; do
  [ -e "$dot" ] || continue
  folder=${dot%.git}
  folder=${folder%/}
  folder=${folder:-.}
  ask() {
    git -C "$folder" -c safe.directory='*' -c core.hooksPath=/dev/null -c core.fsmonitor=false "$@" 2>/dev/null
  }
  head=
  ask rev-parse --quiet --verify HEAD >/dev/null && head=HEAD
  if count=$(ask rev-list --count --max-count=1000 --branches $head --not --remotes); then
    [ "$count" = 0 ] || echo "$count $folder"
  else
    echo "? $folder"
  fi
done
"#;

const AWAKE: Wish = Wish {
    from: &[BoxState::Stopped, BoxState::Failed],
    // A host that dies here is followed by one that brings the box down again.
    into: BoxState::Stopping,
    done: &[BoxState::Running],
};

/// Why a box is not removed before somebody insists.
#[derive(Debug, thiserror::Error)]
pub enum UnpushedError {
    #[error("box `{name}` has commits that were pushed nowhere: {}", .repositories.join(", "))]
    Commits {
        name: BoxName,
        /// How many commits in which repository, at most [`NAMED_MAX`], then how many more.
        repositories: Vec<String>,
    },
    #[error("could not look for unpushed commits in box `{name}`")]
    Look {
        name: BoxName,
        #[source]
        source: InsideError,
    },
    #[error("box `{name}` is {}", boxes::state_word(*state))]
    Busy { name: BoxName, state: BoxState },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the host is ending")]
    Ending,
}

/// Refuses a box with commits that exist nowhere else.
///
/// # Errors
/// [`UnpushedError`]
pub async fn refuse_unpushed(host: &Arc<Host>, id: BoxId) -> Result<(), UnpushedError> {
    let host = Arc::clone(host);
    let recipe = tokio::spawn(async move { recipe(&host, id).await });
    recipe.await.map_err(|_| UnpushedError::Ending)?
}

async fn recipe(host: &Host, id: BoxId) -> Result<(), UnpushedError> {
    let (record, found) = match claim(host, id, AWAKE).await? {
        Claim::Already(record) => {
            let found = look(host, &record).await;
            (record, found)
        }
        Claim::Taken(record) => {
            let found = look_into_stopped(host, &record).await;
            settle(host, id, record.state, record.problem.clone()).await?;
            (record, found)
        }
        Claim::Gone => return Ok(()),
        Claim::Busy(record) => {
            return Err(UnpushedError::Busy {
                name: record.name,
                state: record.state,
            });
        }
    };
    let name = record.name;
    match found {
        Ok(repositories) if repositories.is_empty() => Ok(()),
        Ok(repositories) => Err(UnpushedError::Commits { name, repositories }),
        // Its files are gone: there is nothing to lose.
        Err(InsideError::Runtime(RuntimeError::NotFound(_))) => Ok(()),
        Err(source) => Err(UnpushedError::Look { name, source }),
    }
}

/// Nobody tells box-egress of this box, so that it reaches nothing while it is up.
async fn look_into_stopped(host: &Host, record: &BoxRecord) -> Result<Vec<String>, InsideError> {
    let runtime = host.runtime_of(record)?;
    files::place(host, record)
        .await
        .map_err(|error| RuntimeError::engine("write the files of the box", error))?;
    let started = runtime.start(&spec_of(host, record)).await?;
    fault::point("look.awake");
    let found = look(host, record).await;
    drop(started);
    runtime.stop(&record.id, Duration::ZERO).await?;
    found
}

async fn look(host: &Host, record: &BoxRecord) -> Result<Vec<String>, InsideError> {
    let inside = Inside {
        command: ["sh", "-c", SCRIPT].map(str::to_owned).to_vec(),
        env: vec![("GIT_OPTIONAL_LOCKS".to_owned(), "0".to_owned())],
        input: Vec::new(),
        deadline: LOOK_WAIT,
    };
    let said = inside::answer(host, record, inside).await?;
    Ok(told(&String::from_utf8_lossy(&said)))
}

/// A box wrote this: of what it says only a number and a short printable name are passed on.
fn told(said: &str) -> Vec<String> {
    let lines: Vec<&str> = said.lines().filter(|line| !line.is_empty()).collect();
    let mut all: Vec<String> = lines.iter().take(NAMED_MAX).map(|line| one(line)).collect();
    let more = lines.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        all.push(format!("{more} more"));
    }
    all
}

fn one(line: &str) -> String {
    let (count, folder) = line.split_once(' ').unwrap_or(("?", line));
    let printable = folder.chars().filter(|c| !c.is_control() && *c != '`');
    let folder: String = printable.take(NAME_CHARS_MAX).collect();
    let folder = if folder == "." {
        "the workspace".to_owned()
    } else {
        format!("`{folder}`")
    };
    match count.parse::<u32>() {
        Ok(1000) => format!("1000 or more in {folder}"),
        Ok(count) => format!("{count} in {folder}"),
        Err(_) => format!("git cannot read {folder}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn what_a_box_says_is_cut_to_numbers_and_names() {
        assert_eq!(told(""), Vec::<String>::new());
        assert_eq!(
            told("2 .\n1000 a/b\n? c\x1b[31m`\n4 d\n5 e\n"),
            [
                "2 in the workspace",
                "1000 or more in `a/b`",
                "git cannot read `c[31m`",
                "2 more"
            ]
        );
        assert_eq!(told("nonsense"), ["git cannot read `nonsense`"]);
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the script's own shell, as a box has it"
    )]
    fn sh(folder: &Path, script: &str) -> String {
        let ran = std::process::Command::new("sh")
            .args(["-c", script])
            .current_dir(folder)
            .env("HOME", folder)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        String::from_utf8(ran.stdout).unwrap()
    }

    #[test]
    fn commits_no_remote_has_are_found_and_hooks_do_not_run() {
        let top = tempfile::tempdir().unwrap();
        let set_up = "set -e; g() { git -c user.name=a -c user.email=a@example.com \"$@\"; }; \
            git init -q --bare far.git; \
            git init -q plain; git init -q deep/er/one; \
            g -C deep/er/one commit -q --allow-empty -m one; \
            git init -q pushed; g -C pushed commit -q --allow-empty -m one; \
            git -C pushed remote add far ../far.git; git -C pushed push -q far HEAD:main; \
            git -C pushed fetch -q far; \
            git init -q ahead; cd ahead; git remote add far ../far.git; git fetch -q far; \
            git checkout -q -b mine far/main; \
            g commit -q --allow-empty -m two; g commit -q --allow-empty -m three; \
            git checkout -q --detach; g commit -q --allow-empty -m detached; \
            for hook in post-checkout reference-transaction post-index-change; do \
            printf '#!/bin/sh\\ntouch ../hooked\\n' > .git/hooks/$hook; chmod 755 .git/hooks/$hook; done; \
            git config core.fsmonitor '../never; touch ../hooked'; echo done";
        assert_eq!(sh(top.path(), set_up), "done\n");
        let found = told(&sh(top.path(), SCRIPT));
        assert_eq!(found, ["3 in `ahead`", "1 in `deep/er/one`"]);
        assert!(!top.path().join("hooked").exists());
        std::fs::write(top.path().join("pushed/.git/HEAD"), "garbage").unwrap();
        let found = told(&sh(top.path(), SCRIPT));
        assert!(
            found.contains(&"git cannot read `pushed`".to_owned()),
            "{found:?}"
        );
    }
}
