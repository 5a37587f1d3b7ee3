//! A repository of our own that what comes from a box goes through.

use super::bundle::odd;
use crate::complaint::Complaint;
use crate::git::{Git, failed};
use std::ffi::OsStr;
use std::io::Read;

/// Objects of one pull.
const PACK_BYTES_MAX: u64 = 8 << 30;
/// Largest object that git takes into memory whole: a small pack can hold a commit of gigabytes
/// (`GIT_ALLOC_LIMIT` of git's wrapper.c). Larger files pass in pieces.
const OBJECT_BYTES_MAX: &str = "256m";
const STREAMED: &str = "core.bigFileThreshold=128m";
const REFERENCE: &str = "refs/box/out";
/// How the caller's repository fetches: from a path of ours and by no other protocol, running
/// nothing, checking everything, writing one ref.
const SETTINGS: [&str; 9] = [
    "fetch.fsckObjects=true",
    "transfer.fsckObjects=true",
    "fetch.recurseSubmodules=false",
    "fetch.prune=false",
    "fetch.pruneTags=false",
    "fetch.writeCommitGraph=false",
    "protocol.allow=never",
    "protocol.file.allow=always",
    "core.alternateRefsCommand=",
];

/// Empty but for what the box sent; it sees the caller's objects and writes none of them.
#[derive(Debug)]
pub(super) struct Quarantine {
    git: Git,
    /// Removed with this.
    _place: tempfile::TempDir,
}

impl Quarantine {
    pub(super) fn make(here: &Git) -> Result<Self, Complaint> {
        let could_not = |error: std::io::Error| {
            Complaint::failed("not-pulled", "could not make a folder for the commits")
                .caused_by(error)
        };
        let place = tempfile::Builder::new()
            .prefix("box-pull-")
            .tempdir()
            .map_err(could_not)?;
        let folder = place.path().join("quarantine.git");
        let format = here.run(&["rev-parse", "--show-object-format"])?;
        let format = format!("--object-format={format}");
        let words = [
            "init",
            "-q",
            "--bare",
            "--template=",
            &format,
            "quarantine.git",
        ];
        Git::at(place.path()).run(&words)?;
        let path = |what| {
            let words = ["rev-parse", "--path-format=absolute", "--git-path", what];
            here.run(&words)
        };
        let info = folder.join("objects/info");
        let objects = path("objects")?;
        std::fs::create_dir_all(&info)
            .and_then(|()| std::fs::write(info.join("alternates"), format!("{objects}\n")))
            .map_err(could_not)?;
        if let Ok(shallow) = std::fs::read(path("shallow")?) {
            std::fs::write(folder.join("shallow"), shallow).map_err(could_not)?;
        }
        Ok(Self {
            git: Git::at(&folder)
                .with_variable("GIT_DIR", &folder)
                .with_variable("GIT_ALLOC_LIMIT", OBJECT_BYTES_MAX)
                .with_setting(STREAMED),
            _place: place,
        })
    }

    /// Takes a pack and checks every object in it and every link between them.
    pub(super) fn unpack(&self, mut source: impl Read) -> Result<(), Complaint> {
        let max = format!("--max-input-size={PACK_BYTES_MAX}");
        let words = ["index-pack", "--stdin", "--fix-thin", "--strict", &max];
        let mut child = self.git.feed(&words)?;
        if let Some(mut stdin) = child.stdin.take() {
            // It stops reading at the first thing it does not like, and says what.
            drop(std::io::copy(
                &mut (&mut source).take(PACK_BYTES_MAX),
                &mut stdin,
            ));
        }
        let done = child
            .wait_with_output()
            .map_err(|error| odd(&error.to_string()))?;
        if done.status.success() {
            // The box is to get to its end.
            drop(std::io::copy(
                &mut source.take(1 << 20),
                &mut std::io::sink(),
            ));
            return Ok(());
        }
        let complaint = failed(&words, &done.stderr);
        let cause = complaint
            .problem()
            .and_then(|problem| problem.cause.clone());
        Err(odd(&cause.unwrap_or_default()))
    }

    pub(super) fn has_commit(&self, name: &str) -> Result<bool, Complaint> {
        let words = ["cat-file", "-e", &format!("{name}^{{commit}}")];
        Ok(self.git.ask(&words)?.is_some())
    }

    pub(super) fn is_ancestor(&self, one: &str, of: &str) -> Result<bool, Complaint> {
        let words = ["merge-base", "--is-ancestor", one, of];
        Ok(self.git.ask(&words)?.is_some())
    }

    pub(super) fn subject(&self, commit: &str) -> Result<String, Complaint> {
        let words = [
            "log",
            "-1",
            "--no-show-signature",
            "--format=%s",
            commit,
            "--",
        ];
        self.git.run(&words)
    }

    /// Lets the caller's repository fetch the commit, into one ref.
    pub(super) fn release(&self, here: &Git, tip: &str, target: &str) -> Result<(), Complaint> {
        self.git.run(&["update-ref", REFERENCE, tip])?;
        let quiet = SETTINGS
            .iter()
            .fold(here.clone(), |git, setting| git.with_setting(setting));
        let from = self.git.folder().as_os_str();
        let refspec = format!("+{REFERENCE}:{target}");
        let options = [
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-recurse-submodules",
            "--no-auto-maintenance",
            "--update-shallow",
            "--refmap=",
        ];
        let mut words: Vec<&OsStr> = options.iter().map(AsRef::as_ref).collect();
        words.extend([from, refspec.as_ref()]);
        let branch = target.trim_start_matches("refs/heads/");
        quiet.run(&words).map(drop).map_err(|complaint| {
            let cause = complaint
                .problem()
                .and_then(|problem| problem.cause.clone());
            let cause = cause.unwrap_or_default();
            let checked_out = cause.contains("checked out");
            let title = format!("could not move branch `{branch}`");
            let complaint = Complaint::failed("not-pulled", title).caused_by(cause);
            if checked_out {
                complaint.hinted("you stand on it: `git switch -` first")
            } else {
                complaint
            }
        })
    }
}
