//! A git repository with its uncommitted changes, as one bundle.
//!
//! The changes become a commit that only the bundle knows: made with an index and an object store of
//! our own beside the repository's, which stays as it is, to the last byte.

use super::{BYTES_MAX, Size, origin, too_large};
use crate::complaint::Complaint;
use crate::git::Git;
use crate::inside::Inside;
use crate::output::Output;
use crate::output::table::bytes;
use box_api::BoxName;
use box_api::guest::ARGUMENT_BYTES_MAX;
use std::io;
use std::path::{Path, PathBuf};

/// In the bundle and in the box: what was brought, uncommitted changes included.
const BROUGHT: &str = "refs/box/brought";
/// And the commit it stood at.
const STOOD_AT: &str = "refs/box/head";

/// Run in the box: `sh -c … box <branch> <head> <origin> <shallow> <format>`, the bundle on standard
/// input. Leaves committed what was committed, and changed what was changed.
const UNPACK: &str = r#"
set -e
branch=$1 head=$2 origin=$3 shallow=$4 format=$5
cd /workspace
if [ -n "$(ls -A)" ]; then echo "the workspace is not empty" >&2; exit 1; fi
git init -q --template= --object-format="$format" .
mkdir -p .git/info
if [ -n "$shallow" ]; then printf '%s\n' "$shallow" > .git/shallow; fi
cat > .git/box.bundle
git fetch -q --no-tags --update-head-ok .git/box.bundle '+refs/box/*:refs/box/*' '+refs/tags/*:refs/tags/*'
rm .git/box.bundle
if [ -n "$branch" ]; then git symbolic-ref HEAD "refs/heads/$branch"; fi
if [ -n "$head" ]; then
  if [ -n "$branch" ]; then git update-ref "refs/heads/$branch" "$head"
  else git update-ref --no-deref HEAD "$head"; fi
fi
git read-tree -u --reset refs/box/brought
if [ -n "$head" ]; then git reset -q; else git read-tree --empty; fi
if [ -n "$origin" ]; then git remote add origin "$origin"; fi
"#;

/// A repository, packed.
#[derive(Debug)]
pub(crate) struct Repository {
    top: PathBuf,
    branch: String,
    head: String,
    origin: String,
    shallow: String,
    format: String,
    /// Files that differ from the last commit.
    changed: usize,
    submodules: bool,
    /// Holds the bundle; removed with this.
    place: tempfile::TempDir,
}

/// The top of the repository a folder lies in.
///
/// # Errors
/// That git could not be run at all.
pub(super) fn top(folder: &Path) -> Result<Option<PathBuf>, Complaint> {
    let git = Git::at(folder);
    let Ok(top) = git.ask(&["rev-parse", "--show-toplevel"]) else {
        // Without git nothing is a repository, unless it looks like one.
        let looks = folder.ancestors().any(|above| above.join(".git").exists());
        return if looks {
            git.run(&["--version"]).map(|_| None)
        } else {
            Ok(None)
        };
    };
    if top.is_none() && folder.join(".git").exists() {
        // Broken, or another user's: git's own words say which.
        git.run(&["rev-parse", "--show-toplevel"])?;
    }
    Ok(top.filter(|top| !top.is_empty()).map(PathBuf::from))
}

/// Packs it into a folder of ours.
///
/// # Errors
/// What git said; that it is large.
pub(super) fn pack(output: &mut Output, top: &Path, size: Size) -> Result<Repository, Complaint> {
    let git = Git::at(top);
    if size == Size::Usual {
        check_untracked(&git)?;
    }
    output.progress("packing the repository");
    let place = tempfile::Builder::new()
        .prefix("box-here-")
        .tempdir()
        .map_err(|error| could_not("make a folder for the bundle", &error))?;
    let format = git.run(&["rev-parse", "--show-object-format"])?;
    let head = git.ask(&["rev-parse", "-q", "--verify", "HEAD^{commit}"])?;
    let branch = git.ask(&["symbolic-ref", "-q", "--short", "HEAD"])?;
    let store = Store::make(&git, place.path(), &format)?;
    let brought = store.commit(&git, head.as_deref())?;
    store.name(BROUGHT, &brought)?;
    if let Some(head) = &head {
        store.name(STOOD_AT, head)?;
        store.name_tags(&git, head)?;
    }
    let shallow = store.shallow(&git)?;
    store.bundle(&format)?;
    let repository = Repository {
        changed: store.changed(head.as_deref(), &brought)?,
        submodules: top.join(".gitmodules").exists(),
        origin: git
            .ask(&["remote", "get-url", "origin"])?
            .and_then(|url| origin::for_a_box(&url))
            .unwrap_or_default(),
        top: top.to_owned(),
        branch: branch.unwrap_or_default(),
        head: head.unwrap_or_default(),
        shallow,
        format,
        place,
    };
    let packed = std::fs::metadata(repository.file()).map_or(0, |about| about.len());
    if size == Size::Usual && packed > BYTES_MAX {
        return Err(too_large(top, format!("its bundle has {}", bytes(packed))));
    }
    Ok(repository)
}

/// Before they are read: files nobody has committed and nobody ignores.
fn check_untracked(git: &Git) -> Result<(), Complaint> {
    let listed = git.run(&["ls-files", "--others", "--exclude-standard", "-z"])?;
    let mut total = 0_u64;
    for name in listed.split('\0').filter(|name| !name.is_empty()) {
        let about = std::fs::symlink_metadata(git.folder().join(name));
        total += about.map_or(0, |about| about.len());
        if total > BYTES_MAX {
            let cause = format!(
                "files that are neither committed nor ignored hold over {}",
                bytes(total)
            );
            return Err(too_large(git.folder(), cause));
        }
    }
    Ok(())
}

/// A bare repository of ours that sees the other's objects and keeps what is new.
struct Store {
    git: Git,
    folder: PathBuf,
    index: PathBuf,
}

/// With what it knows of unchanged files, so that they are not read again; and with its time, by
/// which git tells the files it must read all the same (git-scm.com/docs/racy-git).
fn copy_index(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::copy(from, to)?;
    let written_at = std::fs::metadata(from)?.modified()?;
    let copied = std::fs::File::options().write(true).open(to)?;
    copied.set_modified(written_at)
}

impl Store {
    fn make(git: &Git, place: &Path, format: &str) -> Result<Self, Complaint> {
        let folder = place.join("store.git");
        let store = Git::at(place);
        let format = format!("--object-format={format}");
        store.run(&["init", "-q", "--bare", "--template=", &format, "store.git"])?;
        let absolute = ["rev-parse", "--path-format=absolute", "--git-path"];
        let path_of = |what: &str| git.run(&[&absolute[..], &[what]].concat());
        let theirs = path_of("objects")?;
        let info = folder.join("objects/info");
        std::fs::create_dir_all(&info)
            .and_then(|()| std::fs::write(info.join("alternates"), format!("{theirs}\n")))
            .map_err(|error| could_not("prepare the bundle", &error))?;
        let index = place.join("index");
        match copy_index(Path::new(&path_of("index")?), &index) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(could_not("copy the index", &error));
            }
            Ok(()) | Err(_) => {}
        }
        Ok(Self {
            git: Git::at(&folder).with_variable("GIT_DIR", &folder),
            folder,
            index,
        })
    }

    /// A commit of everything that is in the work tree and not ignored.
    fn commit(&self, git: &Git, head: Option<&str>) -> Result<String, Complaint> {
        let git = git
            .clone()
            .with_variable("GIT_INDEX_FILE", &self.index)
            .with_variable("GIT_OBJECT_DIRECTORY", self.folder.join("objects"))
            .with_variable("GIT_AUTHOR_NAME", "box")
            .with_variable("GIT_AUTHOR_EMAIL", "box@localhost")
            .with_variable("GIT_COMMITTER_NAME", "box")
            .with_variable("GIT_COMMITTER_EMAIL", "box@localhost");
        git.run(&["add", "--all"])?;
        let tree = git.run(&["write-tree"])?;
        let mut words = vec!["commit-tree", &tree, "-m", "box: what was brought"];
        words.extend(head.into_iter().flat_map(|head| ["-p", head]));
        git.run(&words)
    }

    fn name(&self, reference: &str, commit: &str) -> Result<(), Complaint> {
        self.git.run(&["update-ref", reference, commit]).map(drop)
    }

    /// Tags of what comes along anyway: versions are told by them.
    fn name_tags(&self, git: &Git, head: &str) -> Result<(), Complaint> {
        let format = "--format=%(refname) %(objectname)";
        let tags = git.run(&["for-each-ref", "--merged", head, format, "refs/tags"])?;
        for line in tags.lines() {
            if let Some((name, object)) = line.split_once(' ') {
                self.name(name, object)?;
            }
        }
        Ok(())
    }

    /// Where the history ends, when not all of it is here.
    fn shallow(&self, git: &Git) -> Result<String, Complaint> {
        let absolute = [
            "rev-parse",
            "--path-format=absolute",
            "--git-path",
            "shallow",
        ];
        let path = git.run(&absolute)?;
        let Ok(text) = std::fs::read_to_string(path) else {
            return Ok(String::new());
        };
        if text.len() >= ARGUMENT_BYTES_MAX {
            return Err(Complaint::failed(
                "shallow",
                "the repository is cut off in too many places",
            )
            .hinted("`git fetch --unshallow` completes it"));
        }
        std::fs::write(self.folder.join("shallow"), &text)
            .map_err(|error| could_not("prepare the bundle", &error))?;
        Ok(text.trim_end().to_owned())
    }

    fn bundle(&self, format: &str) -> Result<(), Complaint> {
        let version = if format == "sha1" {
            "--version=2"
        } else {
            "--version=3"
        };
        self.git
            .run(&[
                "bundle",
                "create",
                "-q",
                version,
                "../brought.bundle",
                "--all",
            ])
            .map(drop)
    }

    fn changed(&self, head: Option<&str>, brought: &str) -> Result<usize, Complaint> {
        let Some(head) = head else { return Ok(0) };
        let words = ["diff-tree", "-r", "--name-only", "-z", head, brought];
        let names = self.git.run(&words)?;
        Ok(names.split('\0').filter(|name| !name.is_empty()).count())
    }
}

impl Repository {
    pub(super) fn top(&self) -> &Path {
        &self.top
    }

    fn file(&self) -> PathBuf {
        self.place.path().join("brought.bundle")
    }

    pub(super) fn bring(&self, output: &mut Output, name: &BoxName) -> Result<(), Complaint> {
        output.progress("bringing the repository");
        let mut bundle = std::fs::File::open(self.file())
            .map_err(|error| could_not("read the bundle", &error))?;
        let command = [
            "sh",
            "-c",
            UNPACK,
            "box",
            &self.branch,
            &self.head,
            &self.origin,
            &self.shallow,
            &self.format,
        ];
        let mut inside = Inside::start(output, name, &command)?;
        if let Some(mut stdin) = inside.stdin() {
            // A box that takes no more says why at its end.
            drop(io::copy(&mut bundle, &mut stdin));
        }
        let finished = inside.finish()?;
        let no_git = finished.code == 127;
        finished
            .or_else("not-brought", "could not bring the repository")
            .map_err(|complaint| {
                if no_git {
                    complaint.hinted("the image of the box has no git")
                } else {
                    complaint
                }
            })?;
        self.tell(output);
        Ok(())
    }

    fn tell(&self, output: &mut Output) {
        let at = match self.branch.as_str() {
            "" => "no branch".to_owned(),
            branch => format!("branch `{branch}`"),
        };
        let changed = match self.changed {
            0 => String::new(),
            1 => ", 1 uncommitted change".to_owned(),
            count => format!(", {count} uncommitted changes"),
        };
        output.note(&format!(
            "brought `{}` ({at}{changed}); it is a copy",
            self.top.display()
        ));
        if self.submodules {
            output.note(
                "submodules were not brought; `git submodule update --init` inside gets them",
            );
        }
    }
}

fn could_not(what: &str, error: &io::Error) -> Complaint {
    Complaint::failed("not-brought", format!("could not {what}")).caused_by(error)
}
