//! `box pull`: a box's work as a branch of the caller's repository.
//!
//! The box bundles, out here the bundle is taken for what it is: made by whoever has the box. Its
//! head is read by us and may name one branch; its objects go into an empty repository of our own,
//! where git checks each of them; only from there the caller's repository fetches, with hooks,
//! monitors, filters and every other protocol off, into one ref that nobody has checked out.

mod bundle;
mod quarantine;

use super::{Ended, Print};
use crate::complaint::Complaint;
use crate::git::{Git, is_object_name};
use crate::inside::Inside;
use crate::output::{Format, Output};
use box_api::BoxName;
use quarantine::Quarantine;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};

/// Commits of ours a box is told, so that it leaves out what we have.
const KNOWN_MAX: usize = 2000;
const NO_COMMITS: i32 = 64;
const NO_BRANCH: i32 = 65;
/// First line of the message of the commit that holds what nobody committed.
const UNCOMMITTED: &str = "box: uncommitted changes";

/// Run in the box: `sh -c … box <branch or empty>`, our commits on standard input. Prints the commit,
/// then the bundle, if there is something to send.
const BUNDLE: &str = r#"
cd /workspace || exit 1
command -v git >/dev/null 2>&1 || exit 127
place=$(mktemp -d) || exit 1
trap 'rm -rf "$place"' EXIT
export GIT_AUTHOR_NAME=box GIT_AUTHOR_EMAIL=box@localhost
export GIT_COMMITTER_NAME=box GIT_COMMITTER_EMAIL=box@localhost
if [ -n "$1" ]; then
  tip=$(git rev-parse -q --verify "refs/heads/$1^{commit}") || exit 65
else
  tip=$(git rev-parse -q --verify "HEAD^{commit}") || exit 64
  # With its time: git tells by it which files it must read again (git-scm.com/docs/racy-git).
  cp -p "$(git rev-parse --git-path index)" "$place/index" 2>/dev/null
  GIT_INDEX_FILE="$place/index" git add -A || exit 1
  tree=$(GIT_INDEX_FILE="$place/index" git write-tree) || exit 1
  if [ "$tree" != "$(git rev-parse "$tip^{tree}")" ]; then
    tip=$(git commit-tree "$tree" -p "$tip" -m "box: uncommitted changes") || exit 1
  fi
fi
git update-ref refs/box/out "$tip" || exit 1
git cat-file --batch-check='%(objectname) %(objecttype)' | while read -r name kind rest; do
  if [ "$kind" = commit ]; then echo "^$name"; fi
done > "$place/known"
echo "$tip"
if [ -z "$(git rev-list -n 1 --stdin "$tip" < "$place/known")" ]; then exit 0; fi
{ echo refs/box/out; cat "$place/known"; } | git bundle create -q - --stdin
"#;

/// Bring a box's commits into your repository, as branch `box/<name>`
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box pull demo\n  \
    box pull demo main\n  \
    box pull demo --force\n\n\
    Makes or moves branch `box/<name>` in the repository you stand in, and nothing else: no other ref,\n\
    no file, no hook. What nobody has committed in the box comes as one more commit. Look at it with\n\
    `git log -p HEAD..box/<name>`, take it with `git merge box/<name>`.")]
pub(super) struct Args {
    #[arg(value_name = "NAME", value_parser = BoxName::parse)]
    name: BoxName,
    /// A branch in the box; where it stands, with uncommitted changes, if not said
    #[arg(value_name = "BRANCH")]
    branch: Option<String>,
    /// Move the branch here even if it has commits the box has not
    #[arg(long, short)]
    force: bool,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: &Args) -> Ended {
    let mut output = args.print.output();
    let (here, pulled) = pull(&mut output, args)?;
    told(&mut output, args, &here, &pulled)?;
    Ok(0)
}

/// As the verb does, for another one: where the box stands, as a branch. Gives its name.
///
/// # Errors
/// What the verb would say.
pub(super) fn fetch(output: &mut Output, name: &BoxName) -> Result<String, Complaint> {
    let args = Args {
        name: name.clone(),
        branch: None,
        force: false,
        print: Print { json: false },
    };
    pull(output, &args)?;
    Ok(format!("box/{name}"))
}

fn pull(output: &mut Output, args: &Args) -> Result<(Git, Pulled), Complaint> {
    let here = Git::at(std::env::current_dir().map_err(|error| {
        Complaint::failed("no-folder", "could not tell the current folder").caused_by(error)
    })?);
    let Some(_) = here.ask(&["rev-parse", "--git-dir"])? else {
        return Err(
            Complaint::usage("no-repository", "you do not stand in a git repository").hinted(
                "go to the one the box's commits belong to; `box cp` copies files to anywhere",
            ),
        );
    };
    let target = format!("refs/heads/box/{}", args.name);
    let before = here.ask(&[
        "rev-parse",
        "-q",
        "--verify",
        &format!("{target}^{{commit}}"),
    ])?;
    let quarantine = Quarantine::make(&here)?;
    let tip = receive(output, args, &here, &quarantine)?;
    if !args.force
        && let Some(before) = &before
    {
        check_forward(&quarantine, args, before, &tip)?;
    }
    let moved = before.as_deref() != Some(tip.as_str());
    if moved {
        quarantine.release(&here, &tip, &target)?;
    }
    Ok((here, Pulled { before, tip, moved }))
}

struct Pulled {
    before: Option<String>,
    tip: String,
    moved: bool,
}

/// The commit the box is at, its objects in quarantine.
fn receive(
    output: &mut Output,
    args: &Args,
    here: &Git,
    quarantine: &Quarantine,
) -> Result<String, Complaint> {
    let name = &args.name;
    let branch = args.branch.as_deref().unwrap_or_default();
    let known = known(here)?;
    let mut inside = Inside::start(output, name, &["sh", "-c", BUNDLE, "box", branch])?;
    let stdin = inside.stdin();
    let feed = std::thread::spawn(move || {
        // A box that takes no more says why at its end.
        drop(stdin.map(|mut stdin| stdin.write_all(known.as_bytes())));
    });
    output.progress("fetching its commits");
    let received = inside.stdout().map(|stdout| take(stdout, quarantine));
    let finished = match &received {
        Some(Ok(_)) => inside.finish()?,
        Some(Err(_)) | None => inside.finish_soon()?,
    };
    drop(feed.join());
    match finished.code {
        0 => {}
        NO_COMMITS => {
            let title = format!("the workspace of box `{name}` is no repository with commits");
            return Err(Complaint::failed("no-commits", title)
                .hinted(format!("`box cp {name}:/workspace/. .` copies its files")));
        }
        NO_BRANCH => {
            let title = format!("box `{name}` has no branch `{branch}`");
            return Err(Complaint::failed("no-branch", title)
                .hinted(format!("`box exec {name} -- git branch` shows them")));
        }
        127 => {
            let title = format!("could not bundle the commits of box `{name}`");
            return Err(
                Complaint::failed("not-pulled", title).caused_by("the image of the box has no git")
            );
        }
        _ => finished.or_else(
            "not-pulled",
            &format!("could not bundle the commits of box `{name}`"),
        )?,
    }
    let tip = received.unwrap_or_else(|| Err(bundle::odd("it says nothing")))?;
    if !quarantine.has_commit(&tip)? {
        return Err(bundle::odd("it leaves out the commit it names"));
    }
    Ok(tip)
}

fn take(stdout: File, quarantine: &Quarantine) -> Result<String, Complaint> {
    let mut source = BufReader::new(stdout);
    let mut first = Vec::new();
    let mut line = std::io::Read::take(&mut source, 128);
    line.read_until(b'\n', &mut first)
        .map_err(|error| bundle::odd(&error.to_string()))?;
    let tip = String::from_utf8_lossy(&first).trim_end().to_owned();
    if !is_object_name(&tip) {
        return Err(bundle::odd("it names no commit"));
    }
    let more = source
        .fill_buf()
        .map_err(|error| bundle::odd(&error.to_string()))?;
    if !more.is_empty() {
        bundle::read_head(&mut source, &tip)?;
        quarantine.unpack(source)?;
    }
    Ok(tip)
}

/// Commits of ours, newest first, one a line.
fn known(here: &Git) -> Result<String, Complaint> {
    let tips = here.run(&["for-each-ref", "--format=%(objectname)", "--count=1000"])?;
    let max = format!("--max-count={}", KNOWN_MAX / 2);
    let recent = here.ask(&["rev-list", &max, "HEAD"])?.unwrap_or_default();
    let lines = tips.lines().chain(recent.lines());
    let names = lines.filter(|name| is_object_name(name)).take(KNOWN_MAX);
    Ok(names.flat_map(|name| [name, "\n"]).collect())
}

/// A branch somebody worked on out here must not be lost in silence. What we made of uncommitted
/// changes last time is not their work.
fn check_forward(
    quarantine: &Quarantine,
    args: &Args,
    before: &str,
    tip: &str,
) -> Result<(), Complaint> {
    if quarantine.is_ancestor(before, tip)? {
        return Ok(());
    }
    let parent = format!("{before}^");
    if quarantine.subject(before)? == UNCOMMITTED && quarantine.is_ancestor(&parent, tip)? {
        return Ok(());
    }
    let title = format!("branch `box/{}` has commits the box has not", args.name);
    Err(Complaint::failed("not-forward", title).hinted(format!(
        "keep them: `git branch mine box/{0}`, then `box pull {0} --force`",
        args.name
    )))
}

fn told(output: &mut Output, args: &Args, here: &Git, pulled: &Pulled) -> Result<(), Complaint> {
    let Pulled { before, tip, moved } = pulled;
    let branch = format!("box/{}", args.name);
    if output.format() == Format::Json {
        return output.object(&serde_json::json!({
            "branch": branch, "commit": tip, "before": before, "moved": moved,
        }));
    }
    if !moved {
        output.note(&format!("branch `{branch}` is where the box is already"));
        return Ok(());
    }
    let count = here.ask(&["rev-list", "--count", &format!("HEAD..{tip}")])?;
    let count = count.unwrap_or_default();
    let short: String = tip.chars().take(12).collect();
    let ahead = match count.as_str() {
        "" => String::new(),
        "1" => ", 1 commit you have not".to_owned(),
        count => format!(", {count} commits you have not"),
    };
    output.note(&format!("branch `{branch}` is at {short}{ahead}"));
    output.note(&format!(
        "hint: `git log -p HEAD..{branch}` shows them, `git merge {branch}` takes them"
    ));
    Ok(())
}
