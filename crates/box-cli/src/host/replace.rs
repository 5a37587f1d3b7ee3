//! Ends a host and sees it gone.

use crate::client::Client;
use crate::client::wire::wait_for;
use crate::complaint::Complaint;
use box_api::control::{Reply, Request};
use rustix::event::PollFlags;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::time::{Duration, Instant};

/// A host commits what it holds and closes its sockets; boxes are not touched.
const END_DEADLINE: Duration = Duration::from_secs(20);

/// Stops the host and waits until its process has ended, so that its locks are free.
///
/// # Errors
/// When it refuses, or does not end in time.
pub(crate) fn stop(mut client: Client) -> Result<u32, Complaint> {
    let number = client.welcome.pid;
    let pid = i32::try_from(number).ok().and_then(Pid::from_raw);
    // Before asking: afterwards the number could already be somebody else's.
    let process = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty()));
    let deadline = Instant::now() + END_DEADLINE;
    client.request(&Request::StopHost)?;
    loop {
        match client.next(Some(deadline)) {
            Ok(Reply::Problem(problem)) => return Err(problem.into()),
            Ok(Reply::Done(_)) => break,
            Ok(_) => {}
            Err(error) if error.is_gone() => break,
            Err(error) => return Err(error.into()),
        }
    }
    let ended = match process {
        Some(Ok(process)) => wait_for(&process, PollFlags::IN, Some(deadline)).unwrap_or(false),
        // It ended between greeting and now, or lives where we cannot see it.
        Some(Err(_)) | None => true,
    };
    if ended {
        return Ok(number);
    }
    let title = format!(
        "the host (process {number}) did not end within {} s",
        END_DEADLINE.as_secs()
    );
    Err(Complaint::engine("host-stays", title)
        .hinted(format!("`kill -9 {number}` ends it; boxes and turns go on")))
}
