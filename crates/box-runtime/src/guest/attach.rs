//! The streams of a durable process, by offset, so that no byte is lost or doubled when a host
//! dies and the next one attaches.
//!
//! One task owns the connection. Three ends reach it, each usable from a task of its own:
//! [`InputSender`], [`AckSender`] and [`EventReceiver`]. Dropping the receiver detaches; the
//! process goes on.

use super::connection::{Connection, parse_reply};
use super::{GuestError, unexpected};
use box_api::guest::{
    Attached, Frame, FrameKind, INPUT_QUEUE_BYTES_MAX, InputState, Message, PIECE_BYTES_MAX, Piece,
    ProcessName, Reply, Request, Stream,
};
use std::os::fd::OwnedFd;
use tokio::sync::{mpsc, watch};

/// Longest single input: above the longest line any agent takes.
pub const INPUT_BYTES_MAX: usize = 64 << 20;
/// Inputs handed over and not yet sent.
const INPUTS_MAX: usize = 4;
/// Events not yet taken, at most 64 KiB each.
const EVENTS_MAX: usize = 16;

/// From which offsets output is wanted: everything before is kept by whoever asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offsets {
    pub stdout: u64,
    pub stderr: u64,
}

/// A process's streams.
#[derive(Debug)]
pub struct Attachment {
    /// Where it begins. `stdout_from` above what was asked for means output was acknowledged
    /// before and is gone from the guest.
    pub state: Attached,
    pub input: InputSender,
    pub acks: AckSender,
    pub events: EventReceiver,
}

/// What comes from an attached process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Follows the last piece of its stream without a gap.
    Output {
        stream: Stream,
        offset: u64,
        bytes: Vec<u8>,
    },
    /// The guest has taken input up to here.
    Input(InputState),
    /// The process has ended and all its output was given. Acknowledgements are still taken.
    Ended { code: i32 },
    /// Somebody else attached; nothing more comes.
    Displaced,
}

/// Takes up the streams of a process. An attachment made earlier is displaced.
///
/// # Errors
/// [`GuestError::Refused`] with `NotFound` for an unknown name, `Offset` for output that does not
/// exist yet.
pub async fn attach(
    conn: OwnedFd,
    process: &ProcessName,
    from: Offsets,
) -> Result<Attachment, GuestError> {
    let mut conn = Connection::new(conn)?;
    let request = Request::Attach {
        process: process.clone(),
        stdout_from: from.stdout,
        stderr_from: from.stderr,
    };
    conn.send(FrameKind::Request, &request).await?;
    let reply = conn.reply_in_time().await?;
    let Reply::Attached(state) = reply else {
        return Err(unexpected(&reply));
    };
    let progress = Progress::begin(state, from)?;
    let (input, inputs) = mpsc::channel(INPUTS_MAX);
    let (acks, acked) = watch::channel(Offsets::default());
    let (events_in, events) = mpsc::channel(EVENTS_MAX);
    let pump = Pump {
        conn,
        progress,
        sending: None,
        held: None,
        ended: false,
    };
    tokio::spawn(pump.run(inputs, acked, events_in));
    Ok(Attachment {
        state,
        input: InputSender {
            inputs: input,
            next: state.input.taken,
        },
        acks: AckSender { acks },
        events: EventReceiver {
            events,
            failed: None,
        },
    })
}

/// Sends input.
#[derive(Debug)]
pub struct InputSender {
    inputs: mpsc::Sender<Input>,
    next: u64,
}

impl InputSender {
    /// Offset of the next byte the guest has not been given. After a new attachment this is what
    /// it has taken.
    pub fn next_offset(&self) -> u64 {
        self.next
    }

    /// Hands over input that begins at `offset` of the process's whole input. What the guest has
    /// already is left out, so sending a message again after a lost connection is safe.
    ///
    /// Waits while a few inputs are under way, which lasts as long as the process does not read:
    /// give it a deadline. May be cancelled: then nothing of it was handed over.
    ///
    /// # Errors
    /// [`GuestError::InputGap`] when bytes before `offset` are missing, [`GuestError::Gone`] when
    /// the attachment is over, [`GuestError::InputTooLong`] above [`INPUT_BYTES_MAX`].
    pub async fn send(&mut self, offset: u64, mut bytes: Vec<u8>) -> Result<(), GuestError> {
        if bytes.len() > INPUT_BYTES_MAX {
            return Err(GuestError::InputTooLong(bytes.len()));
        }
        let Some(known) = self.next.checked_sub(offset) else {
            return Err(GuestError::InputGap {
                wanted: self.next,
                got: offset,
            });
        };
        let known = usize::try_from(known).unwrap_or(usize::MAX);
        if known >= bytes.len() {
            return Ok(());
        }
        let place = self.inputs.reserve().await.map_err(|_| GuestError::Gone)?;
        bytes.drain(..known);
        let at = self.next;
        self.next += bytes.len() as u64;
        place.send(Input::Bytes { at, bytes, sent: 0 });
        Ok(())
    }

    /// Says that no input follows; the process sees the end of its stdin once it has read all.
    ///
    /// # Errors
    /// [`GuestError::Gone`] when the attachment is over.
    pub async fn close(self) -> Result<(), GuestError> {
        let end = Input::End { at: self.next };
        self.inputs.send(end).await.map_err(|_| GuestError::Gone)
    }
}

/// Tells the guest what it need not keep any more.
#[derive(Debug, Clone)]
pub struct AckSender {
    acks: watch::Sender<Offsets>,
}

impl AckSender {
    /// Everything of `stream` before `offset` is kept elsewhere. Never waits; only the highest
    /// offset counts. Offsets that were not received yet are a mistake the guest refuses.
    pub fn ack(&self, stream: Stream, offset: u64) {
        self.acks.send_if_modified(|acks| {
            let place = match stream {
                Stream::Stdout => &mut acks.stdout,
                Stream::Stderr => &mut acks.stderr,
                Stream::Stdin => return false,
            };
            let higher = offset > *place;
            *place = offset.max(*place);
            higher
        });
    }
}

/// Receives what the process writes.
#[derive(Debug)]
pub struct EventReceiver {
    events: mpsc::Receiver<Result<Event, GuestError>>,
    /// An error [`Self::ready`] came upon.
    failed: Option<GuestError>,
}

impl EventReceiver {
    /// The next event, however long it takes. May be cancelled: nothing is lost.
    ///
    /// # Errors
    /// [`GuestError::Gone`] when the box or the connection is gone, which after
    /// [`Event::Ended`] and [`Event::Displaced`] is the usual end.
    pub async fn next(&mut self) -> Result<Event, GuestError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        self.events.recv().await.unwrap_or(Err(GuestError::Gone))
    }

    /// The next event if it is there already. An error is left for [`Self::next`].
    pub fn ready(&mut self) -> Option<Event> {
        if self.failed.is_some() {
            return None;
        }
        match self.events.try_recv() {
            Ok(Ok(event)) => Some(event),
            Ok(Err(error)) => {
                self.failed = Some(error);
                None
            }
            Err(_) => None,
        }
    }
}

#[derive(Debug)]
enum Input {
    Bytes {
        at: u64,
        bytes: Vec<u8>,
        sent: usize,
    },
    End {
        at: u64,
    },
}

/// How far each stream is; what the guest says is measured against it.
#[derive(Debug)]
struct Progress {
    stdout: u64,
    stderr: u64,
    input: InputState,
    /// End of the input sent, or taken before.
    sent: u64,
}

impl Progress {
    fn begin(state: Attached, from: Offsets) -> Result<Self, GuestError> {
        if state.stdout_from < from.stdout || state.stderr_from < from.stderr {
            return Err(GuestError::protocol(
                "output from before what was asked for",
            ));
        }
        let mut progress = Self {
            stdout: state.stdout_from,
            stderr: state.stderr_from,
            input: InputState {
                taken: 0,
                window: 0,
                closed: false,
            },
            sent: state.input.taken,
        };
        progress.input(state.input)?;
        Ok(progress)
    }

    fn input(&mut self, now: InputState) -> Result<(), GuestError> {
        let forward = now.taken >= self.input.taken && now.window >= self.input.window;
        let room = now.window.checked_sub(now.taken);
        let bounded = room.is_some_and(|room| room <= INPUT_QUEUE_BYTES_MAX as u64);
        if !forward || !bounded || now.taken > self.sent {
            return Err(GuestError::protocol("an input offset that fits nothing"));
        }
        self.input = now;
        Ok(())
    }

    fn output(&mut self, piece: &Piece<'_>) -> Result<(), GuestError> {
        let next = match piece.stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
            Stream::Stdin => return Err(GuestError::protocol("input from a process")),
        };
        if piece.offset != *next {
            return Err(GuestError::protocol(
                "output that does not follow what came before",
            ));
        }
        *next = piece.end();
        Ok(())
    }
}

#[derive(Debug)]
struct Pump {
    conn: Connection,
    progress: Progress,
    /// Input under way, and how much of it was sent.
    sending: Option<Input>,
    /// An event that waits for room.
    held: Option<Event>,
    ended: bool,
}

impl Pump {
    async fn run(
        mut self,
        inputs: mpsc::Receiver<Input>,
        acked: watch::Receiver<Offsets>,
        events: mpsc::Sender<Result<Event, GuestError>>,
    ) {
        if let Err(error) = self.pump(inputs, acked, &events).await {
            // The receiver may be gone; then nobody wants to know.
            drop(events.send(Err(error)).await);
        }
    }

    async fn pump(
        &mut self,
        mut inputs: mpsc::Receiver<Input>,
        mut acked: watch::Receiver<Offsets>,
        events: &mpsc::Sender<Result<Event, GuestError>>,
    ) -> Result<(), GuestError> {
        let (mut more_inputs, mut more_acks) = (true, true);
        let mut told = Offsets::default();
        loop {
            tokio::select! {
                changed = acked.changed(), if more_acks => {
                    more_acks = changed.is_ok();
                    let now = *acked.borrow_and_update();
                    self.send_acks(&mut told, now).await?;
                }
                input = inputs.recv(), if more_inputs && self.sending.is_none() => {
                    more_inputs = input.is_some();
                    self.sending = input;
                }
                place = events.reserve(), if self.held.is_some() => {
                    let Ok(place) = place else { return Ok(()) };
                    if let Some(event) = self.held.take() {
                        let last = event == Event::Displaced;
                        place.send(Ok(event));
                        if last { return Ok(()) }
                    }
                }
                frame = self.conn.next_frame(), if self.held.is_none() => match frame? {
                    Some(frame) => self.held = Some(self.event(&frame)?),
                    None => return Err(GuestError::Gone),
                },
                () = events.closed() => return Ok(()),
            }
            self.send_input().await?;
        }
    }

    async fn send_acks(&mut self, told: &mut Offsets, now: Offsets) -> Result<(), GuestError> {
        for (stream, told, now) in [
            (Stream::Stdout, &mut told.stdout, now.stdout),
            (Stream::Stderr, &mut told.stderr, now.stderr),
        ] {
            if now > *told {
                *told = now;
                self.conn
                    .send(
                        FrameKind::Message,
                        &Message::Ack {
                            stream,
                            offset: now,
                        },
                    )
                    .await?;
            }
        }
        Ok(())
    }

    /// Sends as much of the input under way as the guest has room for.
    async fn send_input(&mut self) -> Result<(), GuestError> {
        while let Some(frame) = self.next_input() {
            self.conn.send_bytes(&frame?).await?;
        }
        Ok(())
    }

    /// The next frame of input that may be sent now.
    fn next_input(&mut self) -> Option<Result<Vec<u8>, GuestError>> {
        match self.sending.as_mut()? {
            Input::End { at } => {
                let end = Message::CloseInput { offset: *at };
                self.sending = None;
                Some(Frame::encode(FrameKind::Message, &end).map_err(GuestError::from))
            }
            Input::Bytes { at, bytes, sent } => {
                let offset = *at + *sent as u64;
                let room = self.progress.input.window.saturating_sub(offset);
                let room = usize::try_from(room)
                    .unwrap_or(usize::MAX)
                    .min(PIECE_BYTES_MAX);
                let part = &bytes[*sent..bytes.len().min(*sent + room)];
                if part.is_empty() {
                    return None;
                }
                let mut frame = Vec::new();
                Piece::write(&mut frame, Stream::Stdin, offset, [part, &[]]);
                *sent += part.len();
                self.progress.sent = offset + part.len() as u64;
                if *sent == bytes.len() {
                    self.sending = None;
                }
                Some(Ok(frame))
            }
        }
    }

    /// What a frame of the guest means, checked against what came before.
    fn event(&mut self, frame: &Frame) -> Result<Event, GuestError> {
        if self.ended {
            return Err(GuestError::protocol("a frame after the end"));
        }
        if frame.kind == FrameKind::Piece {
            let piece = Piece::parse(&frame.payload)?;
            self.progress.output(&piece)?;
            let (stream, offset) = (piece.stream, piece.offset);
            return Ok(Event::Output {
                stream,
                offset,
                bytes: piece.bytes.to_vec(),
            });
        }
        match parse_reply(frame)? {
            Reply::Input(state) => {
                self.progress.input(state)?;
                Ok(Event::Input(state))
            }
            Reply::Ended {
                code,
                stdout_end,
                stderr_end,
            } => {
                let all = (stdout_end, stderr_end) == (self.progress.stdout, self.progress.stderr);
                if !all || !(0..=255).contains(&code) {
                    return Err(GuestError::protocol("an end that does not fit the output"));
                }
                self.ended = true;
                Ok(Event::Ended { code })
            }
            Reply::Displaced => Ok(Event::Displaced),
            other @ (Reply::Pong { .. }
            | Reply::Streams { .. }
            | Reply::Exited { .. }
            | Reply::Started { .. }
            | Reply::Attached(_)
            | Reply::Processes { .. }
            | Reply::Done
            | Reply::Refused { .. }) => Err(unexpected(&other)),
        }
    }
}
