//! `Export`: writes a box as an archive, into a pipe the client reads from. The file is the
//! client's: this host opens no path of a caller.

use super::client::Client;
use crate::problem;
use box_api::Problem;
use box_api::control::{Along, Export, Outcome};
use box_core::Host;
use box_core::boxes;
use box_core::caller::Caller;
use box_core::lifecycle;
use box_runtime::Luggage;
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// How much of an archive may be on its way; the most an ordinary user may ask for (pipe(7)).
const PIPE_BYTES: usize = 1 << 20;

pub(super) async fn handle(
    host: &Arc<Host>,
    caller: &Caller,
    client: &Client,
    asked: Export,
) -> Result<Outcome, Problem> {
    let found = boxes::find(host, caller, &asked.name).await;
    let record = found.map_err(problem::find)?;
    let luggage = Luggage {
        snapshots: asked.snapshots == Along::Comes,
        image: asked.image == Along::Comes,
    };
    let departing = client
        .with_progress(|progress| lifecycle::depart(host, record.id, luggage, progress))
        .await
        .map_err(problem::export)?;
    let (theirs, ours) = pipe().map_err(problem::pipe)?;
    client.streams(&[theirs]).await.map_err(problem::client)?;
    let exported = client
        .with_progress(|progress| departing.send(ours, progress))
        .await
        .map_err(problem::export)?;
    Ok(Outcome::Exported(exported))
}

/// The end to read from, and the end to write into.
pub(super) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    // A short one works as well.
    let _ = fcntl_setpipe_size(&write, PIPE_BYTES);
    Ok((read, write))
}
