//! A connection that has the streams of a durable process.

use crate::connection::{Gone, Wire};
use crate::launch::Refused;
use crate::process::Process;
use box_api::guest::{
    Attached, InputState, Message, PIECE_BYTES_MAX, Piece, Refusal, Reply, Stream,
};

/// How far a connection is with the streams of its process.
#[derive(Debug)]
pub(crate) struct Attachment {
    /// Key of the process.
    pub(crate) process: u32,
    stdout_sent: u64,
    stderr_sent: u64,
    input_told: InputState,
    end_told: bool,
}

impl Attachment {
    /// Begins where the host wants, or where the spool begins if that is later.
    pub(crate) fn begin(
        key: u32,
        process: &Process,
        stdout_from: u64,
        stderr_from: u64,
    ) -> Result<(Self, Attached), Refused> {
        let (stdout, stderr) = (process.stdout.spool.kept(), process.stderr.spool.kept());
        if stdout_from > stdout.end || stderr_from > stderr.end {
            return Err(Refused::new(
                Refusal::Offset,
                format!(
                    "output of `{}` ends at {} and {}, before {stdout_from} and {stderr_from}",
                    process.name, stdout.end, stderr.end
                ),
            ));
        }
        let attached = Attached {
            input: process.input.state(),
            stdout_from: stdout_from.max(stdout.start),
            stderr_from: stderr_from.max(stderr.start),
            running: process.is_running(),
        };
        let attachment = Self {
            process: key,
            stdout_sent: attached.stdout_from,
            stderr_sent: attached.stderr_from,
            input_told: attached.input,
            end_told: false,
        };
        Ok((attachment, attached))
    }

    /// Something the host says about the process.
    pub(crate) fn message(&self, process: &mut Process, message: Message) -> Result<(), Refused> {
        match message {
            Message::CloseInput { offset } => process.input.end_at(offset),
            Message::Ack {
                stream: Stream::Stdout,
                offset,
            } if offset <= self.stdout_sent => {
                process.stdout.spool.free(offset);
                Ok(())
            }
            Message::Ack {
                stream: Stream::Stderr,
                offset,
            } if offset <= self.stderr_sent => {
                process.stderr.spool.free(offset);
                Ok(())
            }
            Message::Ack { offset, .. } => Err(Refused::new(
                Refusal::Offset,
                format!("output up to {offset} was not sent, so it cannot be acknowledged"),
            )),
            Message::Signal { .. } => Err(Refused::new(
                Refusal::Malformed,
                "a signal for an attachment; use `kill`",
            )),
        }
    }

    pub(crate) fn input(process: &mut Process, piece: &Piece<'_>) -> Result<(), Refused> {
        match piece.stream {
            Stream::Stdin => process.input.offer(piece.offset, piece.bytes),
            Stream::Stdout | Stream::Stderr => {
                Err(Refused::new(Refusal::Malformed, "output sent to a process"))
            }
        }
    }

    /// Nothing more will come.
    pub(crate) fn is_done(&self) -> bool {
        self.end_told
    }

    /// Sends what is new until the host has enough for now or there is nothing more: whatever
    /// stays behind is found again when the host reads or the process writes.
    pub(crate) fn send(&mut self, wire: &mut Wire, process: &Process) -> Result<(), Gone> {
        loop {
            self.fill(wire, process);
            let any = wire.wants_to_send();
            wire.flush()?;
            if !any || wire.wants_to_send() {
                return Ok(());
            }
        }
    }

    /// Adds what is new, as long as there is room. After the end nothing is.
    fn fill(&mut self, wire: &mut Wire, process: &Process) {
        if self.end_told {
            return;
        }
        let state = process.input.state();
        if state != self.input_told && wire.has_room() {
            self.input_told = state;
            wire.reply(&Reply::Input(state));
        }
        while wire.has_room() && self.fill_pieces(wire, process) {}
        let (stdout_end, stderr_end) = (process.stdout.spool.end(), process.stderr.spool.end());
        let all_sent = (self.stdout_sent, self.stderr_sent) == (stdout_end, stderr_end);
        if let Some(code) = process.end().filter(|_| all_sent) {
            self.end_told = true;
            wire.reply(&Reply::Ended {
                code,
                stdout_end,
                stderr_end,
            });
        }
    }

    /// One piece of each stream. False when there is nothing new.
    fn fill_pieces(&mut self, wire: &mut Wire, process: &Process) -> bool {
        let mut any = false;
        for (stream, output, sent) in [
            (Stream::Stdout, &process.stdout, &mut self.stdout_sent),
            (Stream::Stderr, &process.stderr, &mut self.stderr_sent),
        ] {
            let halves = output.spool.read(*sent, PIECE_BYTES_MAX);
            let count = halves[0].len() + halves[1].len();
            if count > 0 {
                Piece::write(wire.waiting_mut(), stream, *sent, halves);
                *sent += count as u64;
                any = true;
            }
        }
        any
    }
}
