//! How the rest of the host speaks with a thread's driver.

use super::acts::{Act, ActFailure};
use super::back::GoneBack;
use super::saved::ThreadRecord;
use super::state::ThreadInput;
use crate::acp::send::prompt_fits;
use crate::journal::{Feed, Place, Subscription};
use crate::store::{Store, StoreError};
use box_api::decision::{FillError, FormAnswer};
use box_api::thread::{Cursor, Item};
use box_api::{BoxId, DecisionId, ThreadId};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// Letters a driver has not opened yet.
pub(super) const LETTERS_MAX: usize = 64;
/// Longest a driver may take to commit what a letter asks.
const REPLY_WAIT: Duration = Duration::from_secs(15);

/// One thing to do; each is answered once it is committed.
#[derive(Debug)]
pub(super) enum Mail {
    Prompt {
        text: String,
        reply: oneshot::Sender<Result<Result<(), PromptFailure>, StoreError>>,
    },
    /// Rows that are no news of the agent's.
    Write {
        items: Vec<Item>,
        reply: oneshot::Sender<Result<(), StoreError>>,
    },
    GoBack {
        gone: GoneBack,
        reply: oneshot::Sender<Result<(), StoreError>>,
    },
    Act {
        act: Act,
        reply: oneshot::Sender<Result<Result<(), ActFailure>, StoreError>>,
    },
    Cancel {
        by: String,
        reply: oneshot::Sender<Result<(), StoreError>>,
    },
    Answer {
        decision: DecisionId,
        option: String,
        by: String,
        reply: oneshot::Sender<Result<Result<(), AnswerFailure>, StoreError>>,
    },
    AnswerForm {
        decision: DecisionId,
        answer: FormAnswer,
        by: String,
        reply: oneshot::Sender<Result<Result<(), AnswerFailure>, StoreError>>,
    },
    Park {
        until_ms: Option<i64>,
        by: String,
        reply: oneshot::Sender<Result<(), StoreError>>,
    },
    /// A budget is used up, or has room again.
    Budget {
        input: ThreadInput,
        reply: oneshot::Sender<Result<(), StoreError>>,
    },
    /// `by` is absent when its time has come.
    Resume {
        by: Option<String>,
        reply: oneshot::Sender<Result<(), StoreError>>,
    },
}

/// Why a prompt was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptFailure {
    /// As many prompts as may be wait already.
    QueueFull,
}

/// Why an answer was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerFailure {
    /// The decision is not open any more.
    Over,
    /// It is open and is not answered like this.
    Form(FillError),
}

/// Why a thread could not be reached.
#[derive(Debug, thiserror::Error)]
pub enum ThreadError {
    #[error("there is no thread {0}")]
    Unknown(ThreadId),
    #[error("thread {0} does not answer")]
    Busy(ThreadId),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a prompt was not sent.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    #[error("a prompt needs a text")]
    Empty,
    #[error("a prompt of {bytes} bytes is longer than the agent `{agent}` takes")]
    TooLong { bytes: usize, agent: String },
    #[error("thread {0} has as many prompts waiting as may be")]
    QueueFull(ThreadId),
    #[error(transparent)]
    Thread(#[from] ThreadError),
}

/// A running thread. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ThreadHandle {
    record: ThreadRecord,
    /// Longest line the agent takes.
    line_bytes_max: usize,
    mail: mpsc::Sender<Mail>,
    feed: Feed,
    store: Store,
}

impl ThreadHandle {
    pub(super) fn new(
        record: ThreadRecord,
        line_bytes_max: usize,
        (mail, feed): (mpsc::Sender<Mail>, Feed),
        store: Store,
    ) -> Self {
        Self {
            record,
            line_bytes_max,
            mail,
            feed,
            store,
        }
    }

    pub fn thread(&self) -> ThreadId {
        self.record.thread
    }

    pub fn box_id(&self) -> BoxId {
        self.record.box_id
    }

    pub fn agent(&self) -> &str {
        &self.record.agent
    }

    /// Follows the thread from `after`: what was missed, then what comes.
    pub fn subscribe(&self, after: Cursor) -> Subscription {
        let place = Place {
            thread: self.record.thread,
            epoch: self.record.epoch,
        };
        self.feed.follow(self.store.clone(), place, after)
    }

    /// Asks the agent something. When this answers, it is on disk; a turn that runs goes first.
    ///
    /// # Errors
    /// [`PromptError`]
    pub async fn prompt(&self, text: String) -> Result<(), PromptError> {
        self.check_prompt(&text)?;
        match self.ask(|reply| Mail::Prompt { text, reply }).await? {
            Ok(()) => Ok(()),
            Err(PromptFailure::QueueFull) => Err(PromptError::QueueFull(self.record.thread)),
        }
    }

    /// Whether a prompt says something and fits into a line.
    pub(super) fn check_prompt(&self, text: &str) -> Result<(), PromptError> {
        if text.trim().is_empty() {
            return Err(PromptError::Empty);
        }
        if !prompt_fits(text, self.line_bytes_max) {
            return Err(PromptError::TooLong {
                bytes: text.len(),
                agent: self.record.agent.clone(),
            });
        }
        Ok(())
    }

    /// Cancels the running turn; prompts that wait are a person's to send then. `by` is told in the journal.
    ///
    /// # Errors
    /// [`ThreadError`]
    pub async fn cancel(&self, by: String) -> Result<(), ThreadError> {
        self.ask(|reply| Mail::Cancel { by, reply }).await
    }

    /// Writes rows the agent has nothing to do with, such as a `!` line. When this answers, they are
    /// in the journal.
    ///
    /// # Errors
    /// [`ThreadError`]
    pub(crate) async fn write(&self, items: Vec<Item>) -> Result<(), ThreadError> {
        self.ask(|reply| Mail::Write { items, reply }).await
    }

    /// Answers an open decision with one of its options' ids; callers go through
    /// [`crate::decisions::answer`], which knows who may.
    pub(crate) async fn answer(
        &self,
        decision: DecisionId,
        option: String,
        by: String,
    ) -> Result<Result<(), AnswerFailure>, ThreadError> {
        self.ask(|reply| Mail::Answer {
            decision,
            option,
            by,
            reply,
        })
        .await
    }

    /// Fills in an open form, declines it, or takes a request away; callers go through
    /// [`crate::decisions::answer_form`].
    pub(crate) async fn answer_form(
        &self,
        decision: DecisionId,
        answer: FormAnswer,
        by: String,
    ) -> Result<Result<(), AnswerFailure>, ThreadError> {
        self.ask(|reply| Mail::AnswerForm {
            decision,
            answer,
            by,
            reply,
        })
        .await
    }

    /// Nothing begins before `until_ms`; absent: before somebody resumes it.
    ///
    /// # Errors
    /// [`ThreadError`]
    pub(crate) async fn park(&self, until_ms: Option<i64>, by: String) -> Result<(), ThreadError> {
        self.ask(|reply| Mail::Park {
            until_ms,
            by,
            reply,
        })
        .await
    }

    /// Goes on where it was parked, if it was. `by` is absent when its time has come.
    ///
    /// # Errors
    /// [`ThreadError`]
    pub(crate) async fn resume(&self, by: Option<String>) -> Result<(), ThreadError> {
        self.ask(|reply| Mail::Resume { by, reply }).await
    }

    /// A budget is used up: the running turn is interrupted, and nothing begins before `until_ms`
    /// or [`Self::unpause`].
    ///
    /// # Errors
    /// [`ThreadError`]
    pub(crate) async fn pause(
        &self,
        until_ms: Option<i64>,
        why: String,
    ) -> Result<(), ThreadError> {
        let input = ThreadInput::Pause { until_ms, why };
        self.ask(|reply| Mail::Budget { input, reply }).await
    }

    /// What a budget parked goes on; `why` is told in the journal.
    ///
    /// # Errors
    /// [`ThreadError`]
    pub(crate) async fn unpause(&self, why: String) -> Result<(), ThreadError> {
        let input = ThreadInput::Unpause { why };
        self.ask(|reply| Mail::Budget { input, reply }).await
    }

    /// The files of the box are as they were, and so is the conversation: its agent ends, and the
    /// next prompt goes on from there.
    ///
    /// # Errors
    /// [`ThreadError`]
    pub(crate) async fn go_back(&self, gone: GoneBack) -> Result<(), ThreadError> {
        self.ask(|reply| Mail::GoBack { gone, reply }).await
    }

    /// Whether the driver has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.mail.is_closed()
    }

    pub(super) async fn ask<T>(
        &self,
        letter: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Mail,
    ) -> Result<T, ThreadError> {
        let thread = self.record.thread;
        let (reply, answer) = oneshot::channel();
        let exchange = async {
            self.mail
                .send(letter(reply))
                .await
                .map_err(|_| ThreadError::Unknown(thread))?;
            answer
                .await
                .map_err(|_| ThreadError::Busy(thread))?
                .map_err(ThreadError::from)
        };
        timeout(REPLY_WAIT, exchange)
            .await
            .map_err(|_| ThreadError::Busy(thread))?
    }
}
