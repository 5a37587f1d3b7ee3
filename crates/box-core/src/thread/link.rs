//! The streams of a thread's agent: launching, attaching, ending, and the outbox on its way in.

use super::machine::{Machine, MachineError};
use super::saved::{self, Process};
use crate::boxes::reason;
use crate::store::Store;
use box_api::ThreadId;
use box_api::guest::{Command, ProcessName, Refusal, Stream};
use box_runtime::RuntimeError;
use box_runtime::guest::{
    self, AckSender, Attachment, Event, EventReceiver, GuestError, InputSender, Kill, Offsets,
};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Times a connection that broke is made again before the agent is given up.
const TRIES_MAX: u32 = 4;
const TRY_WAIT: Duration = Duration::from_millis(100);
/// Times the guest is asked to forget a process that was killed.
const REAP_TRIES_MAX: u32 = 50;
const REAP_WAIT: Duration = Duration::from_millis(20);

/// Why there is no connection to the agent.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error(transparent)]
    Guest(#[from] GuestError),
    #[error("output of the agent was lost")]
    Lost,
}

impl LinkError {
    /// Whether trying again can help: the guest is there and did not answer well.
    fn may_pass(&self) -> bool {
        match self {
            Self::Guest(error) => !matches!(error, GuestError::Refused { .. }),
            Self::Machine(error) => {
                matches!(error, MachineError::Runtime(RuntimeError::Engine { .. }))
            }
            Self::Lost => false,
        }
    }

    /// Why an agent could not be started, for a person.
    pub(super) fn of_start(&self) -> String {
        let more = match self {
            // Packs are mounted when a box starts.
            Self::Guest(GuestError::Refused {
                why: Refusal::NoProgram,
                ..
            }) => "; if it was installed after the box was started, stop and start the box",
            Self::Machine(_) | Self::Guest(_) | Self::Lost => "",
        };
        format!("the agent could not be started: {}{more}", reason(self))
    }

    /// What became of the agent, for a person.
    pub(super) fn of_agent(&self) -> String {
        match self {
            Self::Machine(
                MachineError::Runtime(RuntimeError::NotRunning(_)) | MachineError::NoBox,
            )
            | Self::Guest(GuestError::Gone) => "the box stopped".to_owned(),
            Self::Guest(GuestError::Refused {
                why: Refusal::NotFound,
                ..
            }) => "the agent is gone".to_owned(),
            Self::Machine(_) | Self::Guest(_) | Self::Lost => {
                format!("the agent cannot be reached: {}", reason(self))
            }
        }
    }
}

/// An attached process. Dropping it detaches; the process goes on.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) generation: u32,
    events: EventReceiver,
    acks: AckSender,
    /// End of the outbox as committed; the pump sends up to there.
    outbox_end: watch::Sender<u64>,
    pump: JoinHandle<()>,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.pump.abort();
    }
}

impl Link {
    /// Begins to feed the process what the outbox has for it.
    pub(super) fn new(
        attachment: Attachment,
        store: Store,
        (thread, generation): (ThreadId, u32),
        outbox_end: u64,
    ) -> Self {
        let Attachment {
            input,
            acks,
            events,
            ..
        } = attachment;
        let (outbox_end, end) = watch::channel(outbox_end);
        let pump = tokio::spawn(async move {
            if let Err(error) = pump(&store, (thread, generation), input, end).await {
                tracing::debug!(%thread, %error, "the way to an agent has ended");
            }
        });
        Self {
            generation,
            events,
            acks,
            outbox_end,
            pump,
        }
    }

    /// May be cancelled: nothing is lost.
    pub(super) async fn next(&mut self) -> Result<Event, GuestError> {
        self.events.next().await
    }

    /// What was committed: output up to these offsets, the outbox up to this end.
    pub(super) fn committed(&self, process: &Process) {
        self.acks.ack(Stream::Stdout, process.stdout_kept);
        self.acks.ack(Stream::Stderr, process.stderr_kept);
        self.outbox_end.send_if_modified(|end| {
            let longer = process.input_end > *end;
            *end = process.input_end.max(*end);
            longer
        });
    }
}

/// Why the pump ends.
#[derive(Debug, thiserror::Error)]
enum PumpError {
    #[error(transparent)]
    Guest(#[from] GuestError),
    #[error(transparent)]
    Store(#[from] crate::store::StoreError),
    #[error("the outbox has nothing at {0}")]
    Hole(u64),
}

/// Sends the outbox, line by line, from where the guest has taken it to. Waits as long as the agent
/// does not read; a cancel that is not read in time ends the agent.
async fn pump(
    store: &Store,
    of: (ThreadId, u32),
    mut input: InputSender,
    mut end: watch::Receiver<u64>,
) -> Result<(), PumpError> {
    loop {
        let from = input.next_offset();
        if from < *end.borrow_and_update() {
            let lines = store
                .read(move |tables| saved::outbox_after(tables, of, from))
                .await?;
            if lines.is_empty() {
                return Err(PumpError::Hole(from));
            }
            for (at, line) in lines {
                input.send(at, line).await?;
            }
        } else if end.changed().await.is_err() {
            return Ok(());
        }
    }
}

/// Starts the process, if the guest has not been asked before, and attaches to it.
pub(super) async fn launch(
    machine: &dyn Machine,
    process: &Process,
) -> Result<Attachment, LinkError> {
    let command = machine.command().await?;
    patiently(machine, process, Some(command)).await
}

/// Takes up the streams of a process from where they are kept.
pub(super) async fn attach(
    machine: &dyn Machine,
    process: &Process,
) -> Result<Attachment, LinkError> {
    patiently(machine, process, None).await
}

/// Tries again when the guest is there and its connection broke.
async fn patiently(
    machine: &dyn Machine,
    process: &Process,
    command: Option<Command>,
) -> Result<Attachment, LinkError> {
    let mut tries = 1;
    loop {
        match once(machine, process, command.clone()).await {
            Err(error) if error.may_pass() && tries < TRIES_MAX => {
                tracing::debug!(process = %process.name, %error, "asking the guest once more");
                tokio::time::sleep(TRY_WAIT * tries).await;
                tries += 1;
            }
            done => return done,
        }
    }
}

async fn once(
    machine: &dyn Machine,
    process: &Process,
    command: Option<Command>,
) -> Result<Attachment, LinkError> {
    if let Some(command) = command {
        match guest::spawn(machine.connect().await?, &process.name, command).await {
            // Whoever asked before this died, or lost the connection, before the answer.
            Ok(_)
            | Err(GuestError::Refused {
                why: Refusal::Exists,
                ..
            }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let from = Offsets {
        stdout: process.stdout_kept,
        stderr: process.stderr_kept,
    };
    let attachment = guest::attach(machine.connect().await?, &process.name, from).await?;
    if attachment.state.stdout_from > from.stdout {
        return Err(LinkError::Lost);
    }
    Ok(attachment)
}

/// Ends a process and everything it started, and lets the guest forget it. A box that is stopped
/// has no processes, so that is an end as well.
pub(super) async fn end(machine: &dyn Machine, name: &ProcessName) -> Result<(), LinkError> {
    let killed = async {
        guest::kill(machine.connect().await?, name, Kill::Everything).await?;
        forget(machine, name).await
    };
    match killed.await {
        Err(
            LinkError::Guest(
                GuestError::Refused {
                    why: Refusal::NotFound,
                    ..
                }
                | GuestError::Gone,
            )
            | LinkError::Machine(
                MachineError::NoBox
                | MachineError::NoProcesses
                | MachineError::Runtime(RuntimeError::NotRunning(_) | RuntimeError::NotFound(_)),
            ),
        ) => Ok(()),
        done => done,
    }
}

/// A killed process is there until the guest has reaped it.
async fn forget(machine: &dyn Machine, name: &ProcessName) -> Result<(), LinkError> {
    let mut tries = 1;
    loop {
        match guest::forget(machine.connect().await?, name).await {
            Err(GuestError::Refused {
                why: Refusal::Running,
                ..
            }) if tries < REAP_TRIES_MAX => {
                tokio::time::sleep(REAP_WAIT).await;
                tries += 1;
            }
            done => return Ok(done?),
        }
    }
}
