//! `box thread import`: a conversation that an agent recorded elsewhere goes on in a box.

use super::super::run::enclosed;
use super::super::{Ended, Print};
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::{Format, Output, visible};
use box_api::BoxName;
use box_api::control::{Outcome, RECORDED_BYTES_MAX, Request, ThreadImport, ThreadImported};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Make a thread of a conversation of Claude Code or Codex
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box thread import ~/.claude/projects/-home-me-app/0b1c….jsonl --box demo\n  \
    box thread import ~/.codex/sessions/2026/11/30/rollout-….jsonl --box demo\n\n\
    Everything said and done in it becomes the thread, with its times; the next prompt goes on with\n\
    it in the box. The files it is about do not come along: `box run --here`, `box cp`.")]
pub(super) struct Args {
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The box it goes on in; your only one if not said
    #[arg(long = "box", value_name = "NAME", value_parser = BoxName::parse)]
    name: Option<BoxName>,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: Args) -> Ended {
    let mut output = args.print.output();
    let (content, bytes) = open(&args.file)?;
    let name = match args.name {
        Some(name) => name,
        None => only(&mut output)?,
    };
    let file = args.file.file_name().unwrap_or_default();
    let request = Request::ThreadImport(ThreadImport {
        name,
        file: file.to_string_lossy().into_owned(),
        bytes,
    });
    let mut client = host::reach(&mut output, OtherBuild::Bear)?;
    client.request(&request)?;
    enclosed::send(
        &mut client,
        (&args.file.display().to_string(), bytes),
        content,
    )?;
    let outcome = client.end(&mut output)?;
    let Outcome::ThreadImported(taken) = outcome else {
        return Err(unexpected(&outcome));
    };
    match output.format() {
        Format::Json => output.object(&taken)?,
        Format::Text => show(&mut output, &taken)?,
    }
    Ok(0)
}

fn open(path: &Path) -> Result<(File, u64), Complaint> {
    let shown = path.display();
    let could_not =
        |error| Complaint::usage("no-file", format!("could not read `{shown}`")).caused_by(error);
    // A pipe without a writer would keep us waiting.
    if !std::fs::metadata(path).map_err(could_not)?.is_file() {
        return Err(Complaint::usage("no-file", format!("`{shown}` is no file")));
    }
    let content = File::open(path).map_err(could_not)?;
    let bytes = content.metadata().map_err(could_not)?.len();
    if bytes == 0 || bytes > RECORDED_BYTES_MAX {
        let is = match bytes {
            0 => "empty".to_owned(),
            _ => format!("larger than {} MiB", RECORDED_BYTES_MAX >> 20),
        };
        return Err(Complaint::usage("no-file", format!("`{shown}` is {is}")));
    }
    Ok((content, bytes))
}

fn only(output: &mut Output) -> Result<BoxName, Complaint> {
    let client = host::reach(output, OtherBuild::Bear)?;
    let outcome = client.ask(output, &Request::List)?;
    let Outcome::Boxes { boxes } = outcome else {
        return Err(unexpected(&outcome));
    };
    match boxes.as_slice() {
        [only] => Ok(only.name.clone()),
        [] => Err(
            Complaint::usage("no-box", "there is no box it could go on in")
                .hinted("`box new demo` makes one"),
        ),
        [_, ..] => Err(
            Complaint::usage("which-box", "which box is it to go on in?")
                .hinted("say `--box <name>`; `box list` shows yours"),
        ),
    }
}

fn show(output: &mut Output, taken: &ThreadImported) -> Result<(), Complaint> {
    let name = format!("{}/{}", taken.name, taken.thread);
    output.data(format!("{name}\n").as_bytes())?;
    for line in &taken.damaged {
        output.note(&format!("line {}: {}", line.line, visible(&line.why)));
    }
    let told = taken.damaged.len() as u64;
    if taken.damaged_count > told {
        output.note(&format!(
            "{} more lines are damaged",
            taken.damaged_count - told
        ));
    }
    let goes_on = if taken.goes_on {
        "takes it up, and the next prompt goes on with it"
    } else {
        "shows it; its agent cannot go on with it"
    };
    output.note(&format!("`box attach {name}` {goes_on}"));
    Ok(())
}
