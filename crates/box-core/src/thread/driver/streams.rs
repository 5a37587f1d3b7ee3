//! What the agent writes: output to lines, lines to steps.

use super::agent::Wish;
use super::{Driver, Wrote};
use crate::acp::{Incoming, LineReader};
use crate::store::Durability;
use crate::thread::batch::{After, Piece};
use crate::thread::saved::Process;
use crate::thread::state::ThreadInput;
use crate::thread::step::OUTPUT_BYTES_MAX;
use box_api::guest::Stream;
use box_runtime::guest::{Event, GuestError};

/// A partial line of this size moves to the tables; the guest keeps 8 MiB.
const SPILL_BYTES: usize = 1 << 20;
/// How much of the agent's standard error is kept for its last words.
const LAST_WORDS_BYTES_MAX: usize = 4 << 10;

impl Driver<'_> {
    pub(super) async fn event(&mut self, event: Event) {
        match event {
            Event::Output {
                stream,
                offset,
                bytes,
            } => match stream {
                Stream::Stdout => self.stdout(offset, &bytes),
                Stream::Stderr => self.stderr(offset, bytes).await,
                // The client of the guest refuses such a piece.
                Stream::Stdin => {}
            },
            Event::Input(state) => {
                self.taken = self
                    .link
                    .as_ref()
                    .map(|link| (link.generation, state.taken));
            }
            Event::Ended { code } => self.ended(code),
            Event::Displaced => self.displaced(),
        }
    }

    fn ended(&mut self, code: i32) {
        let rest = self.reader.pending().to_vec();
        if !rest.is_empty() {
            self.line(&rest);
        }
        self.agent_gone(match code {
            129.. => format!("the agent was killed by signal {}", code - 128),
            code => format!("the agent ended with code {code}"),
        });
    }

    fn stdout(&mut self, offset: u64, bytes: &[u8]) {
        if offset.saturating_add(bytes.len() as u64) > OUTPUT_BYTES_MAX {
            return self.input(ThreadInput::TooMuchOutput);
        }
        let mut rest = bytes;
        // A line may end the agent, and what it printed after that is nobody's.
        while self.link.is_some() {
            match self.reader.next(&mut rest) {
                Ok(Some(line)) => {
                    self.kept(offset + (bytes.len() - rest.len()) as u64);
                    self.line(&line);
                }
                Ok(None) => return self.spill(),
                Err(_) => return self.input(ThreadInput::LineTooLong),
            }
        }
    }

    /// Output up to here is whole lines, and in the tables with the next commit.
    fn kept(&mut self, offset: u64) {
        let Some(process) = self.process.as_mut() else {
            return;
        };
        process.stdout_kept = offset;
        if std::mem::take(&mut self.spilled) > 0 {
            self.batch.clear_spill(process.generation);
        }
    }

    /// The guest cannot keep a long line until it is whole.
    fn spill(&mut self) {
        let Some(process) = self.process.as_mut() else {
            return;
        };
        let pending = self.reader.pending();
        if pending.len() - self.spilled < SPILL_BYTES {
            return;
        }
        let bytes = pending[self.spilled..].to_vec();
        let at = process.stdout_kept;
        process.stdout_kept += bytes.len() as u64;
        self.spilled = pending.len();
        self.batch.spill(Piece {
            generation: process.generation,
            at,
            bytes,
        });
    }

    async fn stderr(&mut self, offset: u64, bytes: Vec<u8>) {
        let Some(process) = self.process.as_mut() else {
            return;
        };
        process.stderr_kept = offset + bytes.len() as u64;
        process
            .last_words
            .push_str(&String::from_utf8_lossy(&bytes));
        let surplus = process
            .last_words
            .len()
            .saturating_sub(LAST_WORDS_BYTES_MAX);
        let surplus = process.last_words.ceil_char_boundary(surplus);
        process.last_words.drain(..surplus);
        self.batch.needs(Durability::Grouped);
        self.world.machine.log(&process.name, bytes).await;
    }

    fn line(&mut self, line: &[u8]) {
        self.batch.needs(Durability::Grouped);
        let Some(message) = Incoming::parse(line) else {
            return;
        };
        if self.step(ThreadInput::Line(message)) == Wrote::Row {
            let line = String::from_utf8_lossy(line).into_owned();
            self.batch.keep(self.state.last_seq(), line);
        }
    }

    /// The connection broke. Whether the agent is still there, attaching again will tell.
    pub(super) fn unlinked(&mut self, error: &GuestError) {
        tracing::debug!(thread = %self.place.thread, %error, "the way to an agent is lost");
        self.unlink();
        self.wish = Wish::Attach;
    }

    /// Somebody else has attached: a host that has taken the thread up, or the last words of one
    /// that died. A commit tells, for it fails when the thread is not ours any more.
    fn displaced(&mut self) {
        self.unlink();
        if let Some(Process { generation, .. }) = self.process {
            self.batch.needs(Durability::Prompt);
            self.batch.after.push(After::Attach { generation });
        }
    }

    fn unlink(&mut self) {
        self.link = None;
        // Beyond what was kept everything comes again.
        let kept = self.reader.pending()[..self.spilled].to_vec();
        self.reader = LineReader::resumed(kept);
    }
}
