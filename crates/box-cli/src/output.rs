//! The only place that prints: data on standard output, everything else on standard error.

pub(crate) mod table;
mod visible;

pub(crate) use visible::{visible, visible_line};

use crate::complaint::Complaint;
use serde::Serialize;
use std::io::{ErrorKind, IsTerminal, Write as _};

/// What a verb prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// For a person.
    Text,
    /// The objects of the wire, for a program; standard error then holds only problems.
    Json,
}

/// Adds colours, or leaves text as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    On,
    Off,
}

/// How a piece of text looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ink {
    Plain,
    Dim,
    Bold,
    Red,
    Green,
    Yellow,
    Cyan,
}

impl Ink {
    /// ECMA-48 "select graphic rendition".
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "0",
            Self::Dim => "2",
            Self::Bold => "1",
            Self::Red => "31",
            Self::Green => "32",
            Self::Yellow => "33",
            Self::Cyan => "36",
        }
    }
}

impl Paint {
    pub(crate) fn with(self, ink: Ink, text: &str) -> String {
        if self == Self::Off || ink == Ink::Plain || text.is_empty() {
            return text.to_owned();
        }
        format!("\x1b[{}m{text}\x1b[0m", ink.code())
    }
}

/// Standard output and standard error of this process.
#[derive(Debug)]
pub(crate) struct Output {
    format: Format,
    out_paint: Paint,
    err_paint: Paint,
    err_rewrites: bool,
    /// A progress line stands on standard error that the next output wipes.
    transient: bool,
}

impl Output {
    pub(crate) fn new(format: Format) -> Self {
        Self {
            format,
            out_paint: paint(&std::io::stdout()),
            err_paint: paint(&std::io::stderr()),
            err_rewrites: std::io::stderr().is_terminal() && !is_dumb(),
            transient: false,
        }
    }

    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// Colours of standard output.
    pub(crate) fn paint(&self) -> Paint {
        self.out_paint
    }

    /// Colours of standard error.
    pub(crate) fn err_paint(&self) -> Paint {
        self.err_paint
    }

    /// Data, exactly as given.
    ///
    /// # Errors
    /// A silent complaint when the reader went away, a loud one when the disk is full.
    pub(crate) fn data(&mut self, bytes: &[u8]) -> Result<(), Complaint> {
        self.wipe();
        let mut out = std::io::stdout().lock();
        out.write_all(bytes)
            .and_then(|()| out.flush())
            .map_err(|error| {
                if error.kind() == ErrorKind::BrokenPipe {
                    return Complaint::reader_gone();
                }
                Complaint::failed("output", "could not write the output").caused_by(error)
            })
    }

    /// One object as one line of JSON.
    ///
    /// # Errors
    /// As [`Output::data`].
    pub(crate) fn object(&mut self, object: &impl Serialize) -> Result<(), Complaint> {
        let line = serde_json::to_string(object).map_err(|error| {
            Complaint::failed("output", "could not write the answer as JSON").caused_by(error)
        })?;
        self.data(format!("{line}\n").as_bytes())
    }

    /// A line for the person, on standard error.
    pub(crate) fn note(&mut self, text: &str) {
        if self.format == Format::Text {
            self.wipe();
            to_stderr(&format!("{text}\n"));
        }
    }

    /// What a person must not miss, on standard error whatever the format.
    pub(crate) fn shout(&mut self, text: &str) {
        self.wipe();
        let word = self.err_paint.with(Ink::Red, "WARNING");
        to_stderr(&format!("{word}: {text}\n"));
    }

    /// What something in a box printed, for the person: it must not steer the terminal.
    pub(crate) fn foreign(&mut self, bytes: &[u8]) {
        if self.format == Format::Text {
            self.wipe();
            to_stderr(&visible(&String::from_utf8_lossy(bytes)));
        }
    }

    /// What is going on right now. On a terminal the next output takes its place.
    pub(crate) fn progress(&mut self, text: &str) {
        if self.format == Format::Json {
            return;
        }
        let text = visible(text);
        let first_line = text.lines().next().unwrap_or_default();
        if self.err_rewrites {
            let cut: String = first_line
                .chars()
                .take(line_columns().saturating_sub(3))
                .collect();
            to_stderr(&format!(
                "\r\x1b[2K{}",
                self.err_paint.with(Ink::Dim, &format!("· {cut}"))
            ));
            self.transient = true;
        } else {
            to_stderr(&format!("· {first_line}\n"));
        }
    }

    /// Asks: no line end, so that the answer stands beside it.
    pub(crate) fn ask(&mut self, question: &str) {
        self.wipe();
        to_stderr(question);
        self.transient = self.err_rewrites;
    }

    /// Says why a verb failed.
    pub(crate) fn complain(&mut self, complaint: &Complaint) {
        self.wipe();
        let Some(problem) = complaint.problem() else {
            return;
        };
        if self.format == Format::Json {
            let line = serde_json::to_string(problem).unwrap_or_default();
            to_stderr(&format!("{line}\n"));
            return;
        }
        let parts = [
            (Ink::Red, "error:", Some(&problem.title)),
            (Ink::Bold, "cause:", problem.cause.as_ref()),
            (Ink::Cyan, "hint:", problem.hint.as_ref()),
        ];
        for (ink, word, text) in parts {
            let Some(text) = text else { continue };
            to_stderr(&format!(
                "{} {}\n",
                self.err_paint.with(ink, word),
                visible(text)
            ));
        }
    }

    /// Takes a standing progress line away.
    fn wipe(&mut self) {
        if std::mem::take(&mut self.transient) {
            to_stderr("\r\x1b[2K");
        }
    }
}

/// Nobody is left to tell when standard error cannot be written.
fn to_stderr(text: &str) {
    let mut err = std::io::stderr().lock();
    drop(err.write_all(text.as_bytes()));
}

/// <https://no-color.org>: any non-empty value means no colours.
fn paint(stream: &impl IsTerminal) -> Paint {
    let said_no = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if stream.is_terminal() && !said_no && !is_dumb() {
        Paint::On
    } else {
        Paint::Off
    }
}

/// A terminal that knows no escape sequences.
pub(crate) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

fn line_columns() -> usize {
    const COLUMNS_ASSUMED: usize = 80;
    let size = rustix::termios::tcgetwinsize(std::io::stderr());
    size.map_or(COLUMNS_ASSUMED, |size| usize::from(size.ws_col).max(20))
}
