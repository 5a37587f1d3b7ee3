//! Where a prompt comes from: the line itself, a file, or standard input.

use super::DEMO_PROMPT;
use crate::complaint::Complaint;
use std::io::{Read, stdin};
use std::path::Path;

/// Longer than any prompt, shorter than a frame.
const PROMPT_BYTES_MAX: u64 = 4 << 20;

/// Where the prompt is.
#[derive(Debug, Clone, Copy)]
pub(in crate::verbs) enum Source<'a> {
    Nowhere,
    Line(&'a str),
    StandardInput,
    File(&'a Path),
}

impl<'a> Source<'a> {
    pub(in crate::verbs) fn of(line: Option<&'a str>, file: Option<&'a Path>) -> Self {
        match (line, file) {
            (_, Some(path)) if path == Path::new("-") => Self::StandardInput,
            (_, Some(path)) => Self::File(path),
            (Some("-"), None) => Self::StandardInput,
            (Some(text), None) => Self::Line(text),
            (None, None) => Self::Nowhere,
        }
    }
}

/// The prompt, which is not empty.
///
/// # Errors
/// That there is none, that it is too long, or that it cannot be read.
pub(in crate::verbs) fn read(agent: &str, source: Source<'_>) -> Result<String, Complaint> {
    let text = match source {
        Source::File(path) => read_file(path)?,
        Source::StandardInput => read_all(stdin(), "standard input")?,
        Source::Line(text) => text.to_owned(),
        Source::Nowhere if agent == "demo" => DEMO_PROMPT.to_owned(),
        Source::Nowhere => String::new(),
    };
    if text.trim().is_empty() {
        return Err(
            Complaint::usage("no-prompt", format!("`{agent}` was not told what to do")).hinted(
                format!("`box run {agent} \"<what to do>\"`, or `-` for standard input"),
            ),
        );
    }
    Ok(text)
}

fn read_file(path: &Path) -> Result<String, Complaint> {
    let name = path.display().to_string();
    let file = std::fs::File::open(path).map_err(|error| unreadable(&name, error))?;
    read_all(file, &name)
}

fn read_all(from: impl Read, name: &str) -> Result<String, Complaint> {
    let mut text = String::new();
    from.take(PROMPT_BYTES_MAX + 1)
        .read_to_string(&mut text)
        .map_err(|error| unreadable(name, error))?;
    if text.len() as u64 > PROMPT_BYTES_MAX {
        let title = format!(
            "the prompt in `{name}` has more than {} MiB",
            PROMPT_BYTES_MAX >> 20
        );
        return Err(Complaint::usage("no-prompt", title)
            .hinted("put long texts into the workspace and name the file"));
    }
    Ok(text)
}

fn unreadable(name: &str, error: std::io::Error) -> Complaint {
    let title = format!("could not read the prompt from `{name}`");
    Complaint::usage("no-prompt", title).caused_by(error)
}
