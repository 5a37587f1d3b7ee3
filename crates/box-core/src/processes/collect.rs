//! Takes a detached process's output from the guest into its log, to its end.
//!
//! Piece by piece: into the log, then the row says how much is there, then the guest may forget it.
//! A host that dies between two of these leaves a tail in the log that the next one cuts off and
//! gets again, so no byte is lost or doubled.

use super::rows::{self, Detached, Kept};
use crate::boxes;
use crate::host::Host;
use crate::logs;
use crate::store::{Durability, StoreError};
use crate::watch;
use box_api::guest::Refusal;
use box_runtime::RuntimeError;
use box_runtime::guest::{self, Attachment, Event, EventReceiver, GuestError, Offsets, Stream};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Written at once at most.
const BATCH_BYTES: usize = 256 << 10;
/// Between two tries to reach a guest that does not answer.
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// So many in a row, then it is left to the next host.
const TRIES_MAX: u32 = 60;

/// Why its output is not taken any further for now.
#[derive(Debug, thiserror::Error)]
enum CollectError {
    #[error("the host is ending")]
    Ending,
    #[error(transparent)]
    Guest(#[from] GuestError),
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    #[error("its log cannot be written")]
    Log(#[source] std::io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// How it came to an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Ended(i32),
    /// With its box, or before it began.
    Gone,
    /// Another host has taken over.
    Displaced,
}

/// In a task of its own.
pub(super) fn begin(host: &Arc<Host>, row: Detached) {
    let host = Arc::downgrade(host);
    tokio::spawn(async move {
        let (id, process) = (row.box_id, row.name.clone());
        if let Err(error) = to_its_end(&host, row).await {
            let why = boxes::reason(&error);
            tracing::warn!(%id, %process, why, "the output of a process is not taken");
        }
    });
}

async fn to_its_end(host: &Weak<Host>, mut row: Detached) -> Result<(), CollectError> {
    let mut tries = 0;
    let outcome = loop {
        let before = row.kept;
        match attend(host, &mut row).await {
            Ok(outcome) => break outcome,
            Err(CollectError::Ending) => return Ok(()),
            Err(error) if tries >= TRIES_MAX => return Err(error),
            Err(error) => {
                tracing::debug!(process = %row.name, %error, "a process is attached to once more");
                tries = if row.kept == before { tries + 1 } else { 0 };
            }
        }
        tokio::time::sleep(TRY_AGAIN).await;
    };
    let host = up(host)?;
    let code = match outcome {
        Outcome::Displaced => return Ok(()),
        Outcome::Gone => None,
        Outcome::Ended(code) => Some(code),
    };
    let (ended, at_ms) = (row.clone(), host.now_ms());
    host.store
        .write(Durability::Prompt, move |tables| {
            let which = (&ended.box_id, &ended.name, ended.started_at_ms);
            rows::end(tables, which, (at_ms, code))
        })
        .await?;
    host.logs.tell();
    if code.is_some() {
        // Its name is free again. If not, whoever starts one of that name tries again.
        if let Ok(Some(conn)) = connect(&host, &row).await {
            drop(guest::forget(conn, &row.name).await);
        }
    }
    Ok(())
}

fn up(host: &Weak<Host>) -> Result<Arc<Host>, CollectError> {
    host.upgrade().ok_or(CollectError::Ending)
}

/// A connection to the guest, or none when the box does not run.
async fn connect(
    host: &Host,
    row: &Detached,
) -> Result<Option<std::os::fd::OwnedFd>, CollectError> {
    let Some(record) = boxes::get(host, row.box_id).await? else {
        return Ok(None);
    };
    let awake = watch::awake(host, &record).await?;
    let Some(processes) = awake.processes() else {
        return Ok(None);
    };
    match processes.connect(&row.box_id).await {
        Ok(conn) => Ok(Some(conn)),
        Err(RuntimeError::NotRunning(_) | RuntimeError::NotFound(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// One attachment, from where the row is to where it ends.
async fn attend(host: &Weak<Host>, row: &mut Detached) -> Result<Outcome, CollectError> {
    let strong = up(host)?;
    let Some(conn) = connect(&strong, row).await? else {
        return Ok(Outcome::Gone);
    };
    drop(strong);
    let from = Offsets {
        stdout: row.kept.stdout,
        stderr: row.kept.stderr,
    };
    let attached = guest::attach(conn, &row.name, from).await;
    let Attachment {
        input,
        acks,
        mut events,
        ..
    } = match attached {
        Ok(attachment) => attachment,
        // The box was started anew since, and knows it no more; or knows another of its name.
        Err(GuestError::Refused {
            why: Refusal::NotFound | Refusal::Offset,
            ..
        }) => return Ok(Outcome::Gone),
        Err(error) => return Err(error.into()),
    };
    // It reads an end: nobody is there to type anything.
    drop(input.close().await);
    loop {
        let mut batch = Batch {
            text: Vec::new(),
            kept: row.kept,
        };
        let outcome = batch.fill(&mut events).await?;
        if !batch.text.is_empty() {
            keep(&*up(host)?, row, batch).await?;
            acks.ack(Stream::Stdout, row.kept.stdout);
            acks.ack(Stream::Stderr, row.kept.stderr);
        }
        if let Some(outcome) = outcome {
            return Ok(outcome);
        }
    }
}

/// Output that is there, and where it ends.
struct Batch {
    text: Vec<u8>,
    kept: Kept,
}

impl Batch {
    /// Waits for something, then takes what else is there, up to a limit.
    async fn fill(&mut self, events: &mut EventReceiver) -> Result<Option<Outcome>, GuestError> {
        let mut event = Some(events.next().await?);
        while let Some(came) = event {
            match came {
                Event::Output {
                    stream,
                    offset,
                    bytes,
                } => {
                    let end = offset + bytes.len() as u64;
                    match stream {
                        Stream::Stderr => self.kept.stderr = end,
                        Stream::Stdout | Stream::Stdin => self.kept.stdout = end,
                    }
                    self.text.extend(bytes);
                }
                Event::Input(_) => {}
                Event::Ended { code } => return Ok(Some(Outcome::Ended(code))),
                Event::Displaced => return Ok(Some(Outcome::Displaced)),
            }
            let room = self.text.len() < BATCH_BYTES;
            event = if room { events.ready() } else { None };
        }
        Ok(None)
    }
}

/// Into the log, then into the row.
async fn keep(host: &Host, row: &mut Detached, batch: Batch) -> Result<(), CollectError> {
    let Batch { text, mut kept } = batch;
    kept.log_bytes = logs::extend(host, row, text)
        .await
        .map_err(CollectError::Log)?;
    row.kept = kept;
    let stated = row.clone();
    host.store
        .write(Durability::Prompt, move |tables| {
            let which = (&stated.box_id, &stated.name, stated.started_at_ms);
            rows::keep(tables, which, stated.kept)
        })
        .await?;
    host.logs.tell();
    Ok(())
}
