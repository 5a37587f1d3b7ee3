//! A folder that is no repository: counted, then sent as it is.

use super::{BYTES_MAX, ENTRIES_MAX, Size, too_large};
use crate::complaint::Complaint;
use crate::copying;
use crate::inside::Inside;
use crate::output::Output;
use crate::output::table::bytes;
use box_api::BoxName;
use box_api::guest::WORKSPACE;
use std::path::{Path, PathBuf};

/// Keeps what was brought beside the workspace, for `box diff`. A box without git has no diff.
const REMEMBER: &str = r#"
command -v git >/dev/null 2>&1 || exit 0
umask 077
store="$HOME/.box/brought.git"
rm -rf "$store" && mkdir -p "$HOME/.box" && git init -q --bare --template= "$store" || exit
export GIT_DIR="$store" GIT_WORK_TREE=/workspace
export GIT_AUTHOR_NAME=box GIT_AUTHOR_EMAIL=box@localhost
export GIT_COMMITTER_NAME=box GIT_COMMITTER_EMAIL=box@localhost
git -c core.bare=false add -A &&
commit=$(git commit-tree -m "box: what was brought" "$(git write-tree)") &&
git update-ref refs/box/brought "$commit"
"#;

#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
}

/// # Errors
/// When it is large and nobody said that it may be.
pub(super) fn look(path: &Path, size: Size) -> Result<Folder, Complaint> {
    if size == Size::Usual {
        check(path)?;
    }
    Ok(Folder {
        path: path.to_owned(),
    })
}

fn check(path: &Path) -> Result<(), Complaint> {
    let mut folders = vec![path.to_owned()];
    let (mut entries, mut total) = (0_u64, 0_u64);
    while let Some(folder) = folders.pop() {
        // What cannot be read is not brought either.
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(about) = entry.metadata() else {
                continue;
            };
            entries += 1;
            total += if about.is_file() { about.len() } else { 0 };
            if about.is_dir() {
                folders.push(entry.path());
            }
            if total > BYTES_MAX {
                return Err(too_large(path, format!("it holds over {}", bytes(total))));
            }
            if entries > ENTRIES_MAX {
                return Err(too_large(
                    path,
                    format!("it holds over {ENTRIES_MAX} files"),
                ));
            }
        }
    }
    Ok(())
}

impl Folder {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn bring(&self, output: &mut Output, name: &BoxName) -> Result<(), Complaint> {
        let done = copying::send(
            output,
            name,
            &copying::Outgoing {
                from: &self.path,
                name: "",
                content: true,
                to: WORKSPACE,
            },
        )?;
        Inside::start(output, name, &["sh", "-c", REMEMBER])?
            .finish()?
            .or_else("not-brought", "could not note down what was brought")?;
        output.note(&format!(
            "brought `{}` ({} in {} entries); it is a copy",
            self.path.display(),
            bytes(done.bytes),
            done.entries
        ));
        Ok(())
    }
}
