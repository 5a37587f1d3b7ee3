//! A program run in a box for the sake of a verb. Its streams are the verb's to read and write.
//!
//! Whatever comes out of them was written in the box: it is bounded by whoever reads it, and its
//! words are shown without anything that could steer a terminal.

use crate::client::{Client, unexpected};
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::{Output, visible};
use box_api::BoxName;
use box_api::control::{Exec, Outcome, Reply, Request};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

/// The static program that lies in every box.
pub(crate) const TOOL: &str = "/opt/box/bin/box-tool";
/// How much of what it says on standard error is kept: the end.
const WORDS_BYTES_MAX: usize = 4 << 10;
const WORDS_LINES_MAX: usize = 5;
/// Something it left behind may keep its standard error open.
const WORDS_WAIT: Duration = Duration::from_millis(300);
/// One that sent what it should not have may have an honest reason to tell.
const LIAR_WAIT: Duration = Duration::from_secs(10);
/// As a shell says that a program is not there.
const NOT_THERE: i32 = 127;

/// A program that runs.
#[derive(Debug)]
pub(crate) struct Inside {
    client: Client,
    name: BoxName,
    program: String,
    stdin: Option<File>,
    stdout: Option<File>,
    stderr: Receiver<Vec<u8>>,
}

/// How it ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: i32,
    /// The end of its standard error, fit to be shown.
    pub(crate) words: String,
}

impl Inside {
    /// Starts it in the workspace. A box that is stopped is started first, and that is said.
    ///
    /// # Errors
    /// What the host said.
    pub(crate) fn start(
        output: &mut Output,
        name: &BoxName,
        command: &[&str],
    ) -> Result<Self, Complaint> {
        let request = Request::Exec(Exec {
            name: name.clone(),
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            cwd: None,
            env: Vec::new(),
            terminal: None,
        });
        let first = match begin(output, &request)? {
            Ok(begun) => begun,
            Err(problem) if problem.slug == "not-running" => {
                output.note(&format!("box `{name}` is stopped: starting it"));
                let start = Request::Start { name: name.clone() };
                host::reach(output, OtherBuild::Bear)?.ask(output, &start)?;
                begin(output, &request)?.map_err(Complaint::from)?
            }
            Err(problem) => return Err(problem.into()),
        };
        let (client, [stdin, stdout, stderr]) = first;
        let could_not = |error| {
            Complaint::engine("inside", "could not use the command's streams").caused_by(error)
        };
        let (stdin, stdout, stderr) = (
            blocking(stdin).map_err(could_not)?,
            blocking(stdout).map_err(could_not)?,
            blocking(stderr).map_err(could_not)?,
        );
        Ok(Self {
            client,
            name: name.clone(),
            program: command.first().copied().unwrap_or_default().to_owned(),
            stdin: Some(stdin),
            stdout: Some(stdout),
            stderr: collect(stderr),
        })
    }

    /// Its standard input; closed by dropping it.
    pub(crate) fn stdin(&mut self) -> Option<File> {
        self.stdin.take()
    }

    pub(crate) fn stdout(&mut self) -> Option<File> {
        self.stdout.take()
    }

    /// Waits for its end. What was not taken of its streams is closed.
    ///
    /// # Errors
    /// That the host went away, or a box of an earlier build that lacks the tool.
    pub(crate) fn finish(self) -> Result<Finished, Complaint> {
        self.finish_by(None)
    }

    /// As [`Self::finish`], for a program that has been caught lying and may never end.
    ///
    /// # Errors
    /// As well that it did not end.
    pub(crate) fn finish_soon(self) -> Result<Finished, Complaint> {
        self.finish_by(Some(Instant::now() + LIAR_WAIT))
    }

    fn finish_by(mut self, deadline: Option<Instant>) -> Result<Finished, Complaint> {
        drop((self.stdin.take(), self.stdout.take()));
        let code = loop {
            match self.client.next(deadline)? {
                Reply::Done(Outcome::Exit { code }) => break code,
                Reply::Problem(problem) => return Err(problem.into()),
                Reply::Progress { .. } | Reply::Note { .. } => {}
                other @ (Reply::Done(_)
                | Reply::Streams
                | Reply::Output { .. }
                | Reply::Thread { .. }
                | Reply::Update(_)
                | Reply::Decision(_)
                | Reply::Net(_)
                | Reply::AnswerRefused { .. }) => return Err(unexpected(&other)),
            }
        };
        if code == NOT_THERE && self.program == TOOL {
            let name = &self.name;
            let title = format!("box `{name}` was started by an earlier build of `box`");
            return Err(Complaint::failed("box-too-old", title).hinted(format!(
                "start it anew: `box stop {name}`, then `box start {name}`"
            )));
        }
        let words = self.stderr.recv_timeout(WORDS_WAIT).unwrap_or_default();
        Ok(Finished {
            code,
            words: last_lines(&String::from_utf8_lossy(&words)).replace("box-tool: ", ""),
        })
    }
}

type Begun = (Client, [OwnedFd; 3]);

fn begin(
    output: &mut Output,
    request: &Request,
) -> Result<Result<Begun, box_api::Problem>, Complaint> {
    let mut client = host::reach(output, OtherBuild::Bear)?;
    client.request(request)?;
    match client.next(None)? {
        Reply::Streams => {}
        Reply::Problem(problem) => return Ok(Err(problem)),
        other @ (Reply::Progress { .. }
        | Reply::Note { .. }
        | Reply::Output { .. }
        | Reply::Thread { .. }
        | Reply::Update(_)
        | Reply::Decision(_)
        | Reply::Net(_)
        | Reply::AnswerRefused { .. }
        | Reply::Done(_)) => return Err(unexpected(&other)),
    }
    let streams = client.take_descriptors();
    let count = streams.len();
    let streams = streams
        .try_into()
        .map_err(|_| unexpected(&format!("{count} streams")))?;
    Ok(Ok((client, streams)))
}

fn blocking(stream: OwnedFd) -> std::io::Result<File> {
    let flags = fcntl_getfl(&stream)?;
    fcntl_setfl(&stream, flags - OFlags::NONBLOCK)?;
    Ok(stream.into())
}

/// Reads a stream to its end and keeps the last of it.
fn collect(mut stream: File) -> Receiver<Vec<u8>> {
    let (say, said) = sync_channel(1);
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        let mut piece = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut piece) {
            kept.extend_from_slice(&piece[..count]);
            let surplus = kept.len().saturating_sub(WORDS_BYTES_MAX);
            kept.drain(..surplus);
        }
        drop(say.send(kept));
    });
    said
}

/// The last lines in one, printable.
pub(crate) fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map(|line| line.rsplit('\r').next().unwrap_or(line).trim())
        .filter(|line| !line.is_empty())
        .collect();
    let last = lines[lines.len().saturating_sub(WORDS_LINES_MAX)..].join("; ");
    visible(&last).into_owned()
}

impl Finished {
    /// # Errors
    /// A complaint with this title when it did not end with 0.
    pub(crate) fn or_else(self, slug: &str, title: &str) -> Result<(), Complaint> {
        if self.code == 0 {
            return Ok(());
        }
        let complaint = Complaint::failed(slug, title);
        Err(if self.words.is_empty() {
            complaint.caused_by(format!("it ended with code {}", self.code))
        } else {
            complaint.caused_by(self.words)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::last_lines;

    #[test]
    fn what_a_box_says_is_one_harmless_line() {
        assert_eq!(
            last_lines("a\n\nremote: 1%\rremote: 2%\nfatal: \x1b[31mno\n"),
            "a; remote: 2%; fatal: ^[[31mno"
        );
        assert_eq!(last_lines(""), "");
    }
}
