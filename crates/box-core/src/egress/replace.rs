//! A box-egress of another build or protocol makes room for this host's own.
//!
//! It ends first: its sockets are closed then, and those the spawner keeps, or new ones, go to the
//! next (`docs/design/0002-sockets-of-a-box-are-kept-by-the-spawner.md`).

use super::Surroundings;
use super::link::{Link, LinkError};
use crate::credentials;
use crate::store::StoreError;
use box_api::egress::{Answer, PROTOCOL, Request};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::OwnedFd;

/// Closing what boxes have open takes a moment.
const END_DEADLINE: Timespec = Timespec {
    tv_sec: 10,
    tv_nsec: 0,
};

/// Why the one that is there stays.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReplaceError {
    #[error("box-egress of another build does not end: {0}")]
    Link(#[from] LinkError),
    #[error("box-egress of another build refuses to end: {0}")]
    Refused(String),
    #[error("box-egress of another build, process {0}, does not end")]
    Stays(u32),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What becomes of a box-egress that is there.
pub(super) enum Found {
    /// It is this host's own, or has to stay.
    Kept(Link),
    /// It has ended.
    Ended,
}

/// Judges the box-egress behind `link`, and ends it if it is to be replaced.
pub(super) async fn judge(around: &Surroundings, mut link: Link) -> Result<Found, ReplaceError> {
    let speaks = link.welcome.protocol == PROTOCOL;
    if speaks && link.welcome.build == around.build {
        return Ok(Found::Kept(link));
    }
    if speaks && let Some(credential) = only_there(around, &mut link).await? {
        tracing::warn!(
            theirs = link.welcome.build,
            ours = around.build,
            credential,
            "box-egress of another build stays: a secret is in its memory only"
        );
        return Ok(Found::Kept(link));
    }
    tracing::info!(
        theirs = link.welcome.build,
        ours = around.build,
        protocol = link.welcome.protocol,
        "box-egress is replaced"
    );
    end(link).await.map(|()| Found::Ended)
}

/// A credential whose secret would be gone with it.
async fn only_there(
    around: &Surroundings,
    link: &mut Link,
) -> Result<Option<String>, ReplaceError> {
    let Answer::Credentials { credentials } = link.call(Request::ListCredentials).await? else {
        return Err(LinkError::Confused.into());
    };
    let (store, vault) = (&around.store, &around.vault);
    Ok(credentials::lost_with_it(store, vault, &credentials).await?)
}

/// Waits for the end of a process; blocks.
fn has_ended(process: &OwnedFd) -> bool {
    let mut looked = [PollFd::new(process, PollFlags::IN)];
    loop {
        match poll(&mut looked, Some(&END_DEADLINE)) {
            Err(Errno::INTR) => {}
            polled => return polled.is_ok_and(|ready| ready > 0),
        }
    }
}

async fn end(mut link: Link) -> Result<(), ReplaceError> {
    let number = link.welcome.pid;
    // Before it is told: afterwards the number could be somebody else's.
    let pid = i32::try_from(number).ok().and_then(Pid::from_raw);
    let process = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    if let Answer::Refused { why } = link.call(Request::Shutdown).await? {
        return Err(ReplaceError::Refused(why));
    }
    let Some(process) = process else {
        return Ok(());
    };
    let ended = tokio::task::spawn_blocking(move || has_ended(&process)).await;
    if matches!(ended, Ok(true)) {
        Ok(())
    } else {
        Err(ReplaceError::Stays(number))
    }
}
