//! Threads: conversations with an agent in a box, as the host of record keeps them.
//!
//! Down: a prompt, an answer or a cancel goes as a letter to the thread's driver, through the pure
//! [`step`], into the journal and the outbox, and from there to the agent. Up: a line of the agent
//! goes through [`step`] into the journal and is then shown. One task owns a thread; nothing it
//! has told anybody is ever only in memory.

mod batch;
mod driver;
mod link;
mod machine;
mod mail;
mod registry;
mod run;
mod saved;
pub mod state;
mod step;

pub use mail::{AnswerFailure, PromptError, PromptFailure, ThreadError, ThreadHandle};
pub use registry::Threads;
pub use run::{RepoError, RunError, Running, run};
pub use saved::ThreadRecord;

use crate::boxes;
use crate::caller::Caller;
use crate::host::Host;
use crate::store::StoreError;
use box_api::thread::ThreadInfo;
use box_api::{BoxId, BoxName, ThreadId};
use std::sync::Arc;

/// Why a thread could not be taken up.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    #[error(transparent)]
    Find(#[from] boxes::FindError),
    #[error("box `{0}` has no thread")]
    None(BoxName),
    #[error("box `{name}` has no thread {thread}")]
    Unknown { name: BoxName, thread: ThreadId },
    #[error(transparent)]
    Thread(#[from] ThreadError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AttachError {
    /// What the person can do now.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::None(name) => Some(format!(
                "begin one with `box run <agent> \"…\" --name {name}`"
            )),
            Self::Find(_) | Self::Unknown { .. } | Self::Thread(_) | Self::Store(_) => None,
        }
    }
}

/// A handle on a thread of a box of the caller; without `thread`, on the one begun last.
///
/// # Errors
/// [`AttachError`]
pub async fn attach(
    host: &Arc<Host>,
    caller: &Caller,
    name: &BoxName,
    thread: Option<ThreadId>,
) -> Result<ThreadHandle, AttachError> {
    let record = boxes::find(host, caller, name).await?;
    let box_id = record.id;
    let found = host.store.read(move |tables| match thread {
        Some(thread) => saved::get(tables, thread),
        None => saved::newest(tables, &box_id),
    });
    let found = found.await?.filter(|found| found.box_id == box_id);
    match (found, thread) {
        (Some(found), _) => Ok(host.threads.handle(host, found.thread).await?),
        (None, Some(thread)) => Err(AttachError::Unknown {
            name: record.name,
            thread,
        }),
        (None, None) => Err(AttachError::None(record.name)),
    }
}

/// The threads of a box, newest first.
///
/// # Errors
/// What the store said.
pub async fn list(host: &Host, box_id: BoxId) -> Result<Vec<ThreadInfo>, StoreError> {
    host.store
        .read(move |tables| saved::list(tables, &box_id))
        .await
}
