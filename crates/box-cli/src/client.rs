//! A connection to the host: greeting, one request, its replies.

pub(crate) mod wire;

use crate::complaint::Complaint;
use crate::identity;
use crate::output::{Output, visible};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use box_api::PROTOCOL;
use box_api::control::{ClientMessage, Hello, Outcome, Reply, Request, Welcome};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use wire::{Wire, WireError};

/// A host that listens greets at once.
const GREETING_DEADLINE: Duration = Duration::from_secs(10);
/// The longest silence in a request whose end is in sight; unpacking an image says something more
/// often than this.
const SILENCE_MAX: Duration = Duration::from_mins(30);

/// A greeted connection. One request each.
#[derive(Debug)]
pub(crate) struct Client {
    wire: Wire,
    pub(crate) welcome: Welcome,
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wire.as_fd()
    }
}

impl Client {
    pub(crate) fn greet(stream: UnixStream) -> Result<Self, WireError> {
        let mut wire = Wire::new(stream);
        let sent = wire.send(&Hello {
            build: identity::build(),
            protocol: PROTOCOL,
        });
        // A host that turns us away greets and hangs up without listening.
        let frame = wire
            .receive(Some(Instant::now() + GREETING_DEADLINE))
            .or_else(|error| sent.and(Err(error)))?;
        let welcome = serde_json::from_slice(&frame).map_err(WireError::Garbled)?;
        Ok(Self { wire, welcome })
    }

    pub(crate) fn request(&mut self, request: &Request) -> Result<(), WireError> {
        self.wire
            .send(request)
            .map_err(|error| self.last_words(error))
    }

    /// A host that turns us away says why before it hangs up; that is still to be read.
    fn last_words(&mut self, error: WireError) -> WireError {
        match self.next(Some(Instant::now() + GREETING_DEADLINE)) {
            Ok(Reply::Problem(problem)) => WireError::TurnedAway(Box::new(problem)),
            _ => error,
        }
    }

    pub(crate) fn say(&mut self, message: &ClientMessage) -> Result<(), WireError> {
        self.wire.send(message)
    }

    /// The next reply, waiting for it.
    pub(crate) fn next(&mut self, deadline: Option<Instant>) -> Result<Reply, WireError> {
        let frame = self.wire.receive(deadline)?;
        serde_json::from_slice(&frame).map_err(WireError::Garbled)
    }

    /// Reads what is there; call when the socket is readable.
    pub(crate) fn fill(&mut self) -> Result<(), WireError> {
        self.wire.fill()
    }

    /// A reply that is there already.
    pub(crate) fn ready(&mut self) -> Result<Option<Reply>, WireError> {
        let frame = self.wire.take()?;
        frame
            .map(|frame| serde_json::from_slice(&frame).map_err(WireError::Garbled))
            .transpose()
    }

    pub(crate) fn take_descriptors(&mut self) -> Vec<OwnedFd> {
        self.wire.take_descriptors()
    }

    /// Asks and waits for the end, showing progress on the way.
    ///
    /// # Errors
    /// The host's problem, or that it went away.
    pub(crate) fn ask(
        mut self,
        output: &mut Output,
        request: &Request,
    ) -> Result<Outcome, Complaint> {
        self.request(request)?;
        self.end(output)
    }

    /// As [`Self::ask`], once the request has been said.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub(crate) fn end(mut self, output: &mut Output) -> Result<Outcome, Complaint> {
        loop {
            match self.next(Some(Instant::now() + SILENCE_MAX))? {
                Reply::Progress { text } => output.progress(&text),
                Reply::Note { text } => output.note(&visible(&text)),
                // Of a set-up: a file of it is nothing anybody asked for.
                Reply::Output { base64 } => output.foreign(&decoded(&base64)?),
                Reply::Done(outcome) => return Ok(outcome),
                Reply::Problem(problem) => return Err(problem.into()),
                other @ (Reply::Streams
                | Reply::Thread { .. }
                | Reply::Update(_)
                | Reply::Decision(_)
                | Reply::Net(_)
                | Reply::AnswerRefused { .. }) => return Err(unexpected(&other)),
            }
        }
    }
}

impl From<WireError> for Complaint {
    fn from(error: WireError) -> Self {
        if let WireError::TurnedAway(problem) = error {
            return (*problem).into();
        }
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        let gone = error.is_gone();
        let complaint = Self::engine("host-lost", error.to_string());
        let complaint = match cause {
            Some(cause) => complaint.caused_by(cause),
            None => complaint,
        };
        if gone {
            complaint.hinted("type it again; boxes and their agents went on")
        } else {
            complaint
        }
    }
}

fn decoded(base64: &str) -> Result<Vec<u8>, Complaint> {
    STANDARD.decode(base64).map_err(|error| {
        Complaint::engine("host-garbled", "the host sent output that is no base64").caused_by(error)
    })
}

/// The host answered with something that is no answer to what was asked.
pub(crate) fn unexpected(what: &impl std::fmt::Debug) -> Complaint {
    let what: String = format!("{what:?}").chars().take(80).collect();
    Complaint::engine(
        "host-garbled",
        "the host answered something else than was asked",
    )
    .caused_by(what)
    .hinted("`box up` replaces a host of another build")
}
