//! `!` lines typed in a conversation: run in the box, shown as they print.

use super::Driver;
use crate::client::Client;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::{Ink, visible};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use box_api::control::{self, Outcome, Reply, Request};
use box_api::thread::{Item, ThreadUpdate};

/// A line that runs; what it prints comes over a connection of its own.
#[derive(Debug)]
pub(super) struct ShellLine {
    client: Client,
    line: String,
    ended: Ended,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Not,
    /// Its row is still to come, and was shown already.
    Yes,
}

impl ShellLine {
    pub(super) fn client(&self) -> &Client {
        &self.client
    }
}

impl Driver<'_> {
    /// Begins a line, one at a time.
    pub(super) fn run_line(&mut self, line: String) -> Result<(), Complaint> {
        let runs = self
            .line
            .as_ref()
            .is_some_and(|one| one.ended == Ended::Not);
        if runs {
            return self.note("a line runs already");
        }
        let Some(name) = self.conversation.name().cloned() else {
            return Ok(());
        };
        let thread = self.conversation.thread();
        let mut client = host::reach(self.output, OtherBuild::Bear)?;
        let asked = control::ShellLine {
            name,
            thread,
            line: line.clone(),
        };
        client.request(&Request::ShellLine(asked))?;
        self.line = Some(ShellLine {
            client,
            line,
            ended: Ended::Not,
        });
        Ok(())
    }

    /// Takes in what a line printed; call when there is something.
    pub(super) fn read_line_output(&mut self) -> Result<(), Complaint> {
        let Some(mut running) = self.line.take() else {
            return Ok(());
        };
        let filled = running.client.fill();
        while let Some(reply) = running.client.ready()? {
            self.line_says(&mut running, reply)?;
        }
        match filled {
            Ok(()) => {}
            Err(error) if error.is_gone() => {
                if running.ended == Ended::Not {
                    self.note("the host went away; whether the line ran to its end shows later")?;
                }
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
        self.line = Some(running);
        Ok(())
    }

    fn line_says(&mut self, running: &mut ShellLine, reply: Reply) -> Result<(), Complaint> {
        match reply {
            Reply::Output { base64 } => {
                let piece = STANDARD.decode(base64).unwrap_or_default();
                let text = String::from_utf8_lossy(&piece).into_owned();
                self.view.transcript.print(&visible(&text));
                self.flush()
            }
            Reply::Done(Outcome::ShellEnded(ended)) => {
                running.ended = Ended::Yes;
                self.break_line()?;
                let how = how_ended(ended.exit, ended.note.as_deref());
                let how = self.output.err_paint().with(Ink::Dim, &how);
                self.output.note(&how);
                Ok(())
            }
            Reply::Problem(problem) => {
                running.ended = Ended::Yes;
                self.note(&problem.title)
            }
            Reply::Progress { .. }
            | Reply::Note { .. }
            | Reply::Streams
            | Reply::Thread { .. }
            | Reply::Update(_)
            | Reply::Decision(_)
            | Reply::Net(_)
            | Reply::AnswerRefused { .. }
            | Reply::Done(_) => Ok(()),
        }
    }

    /// Whether an update is the row of a line whose output was shown as it came.
    pub(super) fn is_our_line(&self, update: &ThreadUpdate) -> bool {
        let ThreadUpdate::Row(row) = update else {
            return false;
        };
        let Item::Command { command, .. } = &row.item else {
            return false;
        };
        self.line.as_ref().is_some_and(|line| line.line == *command)
    }
}

/// How a line ended, as C58 has it.
pub(crate) fn how_ended(exit: Option<i32>, note: Option<&str>) -> String {
    match (exit, note) {
        (Some(code), _) => format!("[exit {code}]"),
        (None, Some(why)) => format!("[{why}]"),
        (None, None) => "[ended]".to_owned(),
    }
}
