//! `box diff`: what changed in a box's workspace since it was brought.

use super::{Ended, Print};
use crate::complaint::Complaint;
use crate::inside::Inside;
use crate::output::{Format, Ink, Output, Paint, visible};
use box_api::BoxName;
use std::io::{BufRead as _, BufReader, IsTerminal as _};
use std::path::PathBuf;

/// One line of a change is cut here when it is shown; in a file it is whole.
const LINE_BYTES_MAX: usize = 1 << 20;
/// A diff that is longer is no reading.
const DIFF_BYTES_MAX: usize = 256 << 20;
/// When nothing is there to compare with.
const NOTHING_BROUGHT: i32 = 64;

/// Run in the box: `sh -c … box <what> <path>…`. What git is told here it tells of the agent's own
/// settings: whoever must be sure compares after `box pull`.
const COMPARE: &str = r#"
what=$1; shift
cd /workspace || exit 1
if git rev-parse -q --verify refs/box/brought >/dev/null 2>&1; then base=refs/box/brought
elif [ -d "$HOME/.box/brought.git" ]; then
  export GIT_DIR="$HOME/.box/brought.git" GIT_WORK_TREE=/workspace; base=refs/box/brought
elif git rev-parse -q --verify refs/remotes/origin/HEAD >/dev/null 2>&1; then
  base=$(git merge-base HEAD refs/remotes/origin/HEAD) || exit 1
elif command -v git >/dev/null 2>&1; then exit 64
else exit 127; fi
place=$(mktemp -d) || exit 1
trap 'rm -rf "$place"' EXIT
cp -p "$(git rev-parse --git-path index)" "$place/index" 2>/dev/null
export GIT_INDEX_FILE="$place/index"
git -c core.bare=false add -A && git -c core.bare=false diff --cached --no-color --no-ext-diff "$what" "$base" -- "$@"
"#;

/// Show what changed in a box since its files were brought
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box diff demo\n  \
    box diff demo --stat\n  \
    box diff demo src > changes.patch\n\n\
    Compares with what `--here` brought, or with what `--repo` cloned. The box compares: it says what\n\
    its agent lets it say. `box pull` brings the commits to where your own git can look at them.")]
pub(super) struct Args {
    #[arg(value_name = "NAME", value_parser = BoxName::parse)]
    name: BoxName,
    /// Only these files
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Only which files, and how much
    #[arg(long)]
    stat: bool,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: &Args) -> Ended {
    let mut output = args.print.output();
    let paths: Vec<String> = args
        .paths
        .iter()
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    let what = if args.stat { "--stat" } else { "--patch" };
    let mut command = vec!["sh", "-c", COMPARE, "box", what];
    command.extend(paths.iter().map(String::as_str));
    let mut inside = Inside::start(&mut output, &args.name, &command)?;
    let shown = match inside.stdout() {
        Some(stdout) => show(&mut output, stdout)?,
        None => String::new(),
    };
    let finished = inside.finish()?;
    if finished.code == NOTHING_BROUGHT {
        let title = format!(
            "nothing was brought into box `{}` to compare with",
            args.name
        );
        return Err(Complaint::failed("nothing-brought", title)
            .hinted("`--here` and `--repo` bring something when a box is made"));
    }
    let no_git = finished.code == 127;
    finished
        .or_else(
            "no-diff",
            &format!("could not compare in box `{}`", args.name),
        )
        .map_err(|complaint| {
            if no_git {
                complaint.hinted("the image of the box has no git")
            } else {
                complaint
            }
        })?;
    if output.format() == Format::Json {
        output.object(&serde_json::json!({"name": args.name, "diff": shown}))?;
    }
    Ok(0)
}

/// How many files changed since they were brought; absent where nobody can tell.
pub(super) fn files_changed(output: &mut Output, name: &BoxName) -> Option<usize> {
    let command = ["sh", "-c", COMPARE, "box", "--name-only"];
    let mut inside = Inside::start(output, name, &command).ok()?;
    let stdout = inside.stdout()?;
    let bounded = std::io::Read::take(stdout, DIFF_BYTES_MAX as u64);
    let count = BufReader::new(bounded).split(b'\n').count();
    (inside.finish().ok()?.code == 0).then_some(count)
}

/// Shows it as it comes; for a program it is kept.
fn show(output: &mut Output, stdout: std::fs::File) -> Result<String, Complaint> {
    let to_a_person = std::io::stdout().is_terminal();
    let paint = output.paint();
    let mut kept = String::new();
    let mut total = 0;
    let mut reader = BufReader::new(stdout);
    loop {
        let mut line = Vec::new();
        let mut part = std::io::Read::take(&mut reader, LINE_BYTES_MAX as u64);
        let count = part.read_until(b'\n', &mut line).unwrap_or(0);
        if count == 0 {
            return Ok(kept);
        }
        total += count;
        if total > DIFF_BYTES_MAX {
            return Err(
                Complaint::failed("no-diff", "the diff has more than 256 MiB")
                    .hinted("name the files you want, or take `--stat`"),
            );
        }
        let text = String::from_utf8_lossy(&line);
        match output.format() {
            Format::Json => kept.push_str(&text),
            // What a box wrote must not steer the terminal; a file gets it as it is.
            Format::Text if to_a_person => {
                output.data(painted(paint, &visible(&text)).as_bytes())?;
            }
            Format::Text => output.data(&line)?,
        }
    }
}

fn painted(paint: Paint, line: &str) -> String {
    let ink = match line.as_bytes() {
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] | [b'd', b'i', b'f', b'f', b' ', ..] => {
            Ink::Bold
        }
        [b'+', ..] => Ink::Green,
        [b'-', ..] => Ink::Red,
        [b'@', b'@', ..] => Ink::Cyan,
        _ => Ink::Plain,
    };
    let text = line.strip_suffix('\n');
    match text {
        Some(text) => format!("{}\n", paint.with(ink, text)),
        None => paint.with(ink, line),
    }
}
