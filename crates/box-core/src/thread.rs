//! Threads: conversations with an agent in a box, as the host of record keeps them.
//!
//! Down: a prompt, an answer or a cancel goes as a letter to the thread's driver, through the pure
//! [`step`], into the journal and the outbox, and from there to the agent. Up: a line of the agent
//! goes through [`step`] into the journal and is then shown. One task owns a thread; nothing it
//! has told anybody is ever only in memory.

mod acts;
mod back;
mod batch;
mod calls;
mod driver;
mod fork;
mod link;
mod listed;
mod machine;
mod mail;
pub mod parked;
mod registry;
mod run;
mod saved;
pub mod state;
mod step;

pub use acts::{ActError, ActFailure, TITLE_CHARS_MAX};
pub use back::GoneBack;
pub(crate) use back::{Along, bring_along};
pub use calls::{Put, archive, attach, attach_by_id, list, of_box, of_owner, show};
pub use fork::{ForkError, fork};
pub use listed::Archived;
pub use mail::{AnswerFailure, PromptError, PromptFailure, ThreadError, ThreadHandle};
pub use registry::Threads;
pub use run::{RepoError, RunError, Running, TakeInError, open, run, run_with, take_in};
pub use saved::ThreadRecord;

use crate::boxes;
use crate::store::StoreError;
use box_api::{BoxName, ThreadId};

/// Why a thread could not be taken up.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    #[error(transparent)]
    Find(#[from] boxes::FindError),
    #[error("box `{0}` has no thread")]
    None(BoxName),
    #[error("there is no thread {0}")]
    NoSuch(ThreadId),
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
            Self::NoSuch(_) | Self::Unknown { .. } => Some("`box threads` lists them".to_owned()),
            Self::Find(_) | Self::Thread(_) | Self::Store(_) => None,
        }
    }
}
