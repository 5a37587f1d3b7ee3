//! What a person does with a running thread besides asking and answering.

use super::mail::{Mail, PromptError, ThreadError, ThreadHandle};
use super::state::{ChooseError, QueueChange, ThreadInput, ThreadState};
use box_api::ThreadId;
use box_api::control::CHOSEN_OPTIONS_MAX;
use box_api::thread::ChosenOption;

/// Longest title, characters.
pub const TITLE_CHARS_MAX: usize = 100;

/// One act; see the methods of [`ThreadHandle`].
#[derive(Debug)]
pub(super) enum Act {
    Steer { text: String },
    Queue(QueueChange),
    Choose(Vec<ChosenOption>),
    Rename { title: String },
    Open,
    StopTask { task: String, by: String },
}

/// Why an act was not taken, as the thread stands.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ActFailure {
    #[error("as many prompts wait as may be")]
    QueueFull,
    #[error("no prompt {0} waits; it was sent or deleted")]
    NotQueued(u64),
    #[error(transparent)]
    Choose(#[from] ChooseError),
    #[error("there is no task `{0}`")]
    NoTask(String),
    #[error("the agent ends no single task")]
    NoStop,
}

impl ActFailure {
    /// What the person can do now.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Choose(error) => error.hint(),
            Self::NoStop => Some("ask it to, or stop the box".to_owned()),
            Self::QueueFull | Self::NotQueued(_) | Self::NoTask(_) => None,
        }
    }
}

/// Why an act was not done.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    #[error("thread {thread}: {why}")]
    Failed {
        thread: ThreadId,
        #[source]
        why: ActFailure,
    },
    #[error("a title has 1 to {TITLE_CHARS_MAX} characters")]
    Title,
    #[error("1 to {CHOSEN_OPTIONS_MAX} options are set at once")]
    Options,
    #[error(transparent)]
    Prompt(#[from] PromptError),
    #[error(transparent)]
    Thread(#[from] ThreadError),
}

impl ThreadState {
    /// What the act comes to, if it can be done now.
    ///
    /// # Errors
    /// [`ActFailure`]
    pub(super) fn admit(&self, act: Act) -> Result<ThreadInput, ActFailure> {
        match act {
            Act::Steer { text } if self.has_room() => Ok(ThreadInput::Steer { text }),
            Act::Steer { .. } => Err(ActFailure::QueueFull),
            Act::Queue(change) if self.queue.can_change(change.queued()) => {
                Ok(ThreadInput::Queued(change))
            }
            Act::Queue(change) => Err(ActFailure::NotQueued(change.queued())),
            Act::Choose(chosen) => {
                let chosen = chosen.iter().map(|chosen| self.offer.find(chosen));
                let chosen = chosen.collect::<Result<Vec<_>, _>>()?;
                Ok(ThreadInput::Choose { chosen })
            }
            Act::Rename { title } => Ok(ThreadInput::Rename { title }),
            Act::Open => Ok(ThreadInput::Open),
            Act::StopTask { task, by } => {
                if !self.background.tasks.iter().any(|known| known.task == task) {
                    return Err(ActFailure::NoTask(task));
                }
                if !self.can.stop_task {
                    return Err(ActFailure::NoStop);
                }
                Ok(ThreadInput::StopTask { task, by })
            }
        }
    }
}

impl ThreadHandle {
    /// A prompt for the running turn: into it where the agent can, else the turn is cancelled for
    /// it. Without a turn it is a prompt as any other.
    ///
    /// # Errors
    /// [`ActError`]
    pub async fn steer(&self, text: String) -> Result<(), ActError> {
        self.check_prompt(&text)?;
        self.act(Act::Steer { text }).await
    }

    /// Gives a prompt that waits another text.
    ///
    /// # Errors
    /// [`ActError`]
    pub async fn edit_queued(&self, queued: u64, text: String) -> Result<(), ActError> {
        self.check_prompt(&text)?;
        self.act(Act::Queue(QueueChange::Edit { queued, text }))
            .await
    }

    /// Deletes a prompt that waits.
    ///
    /// # Errors
    /// [`ActError`]
    pub async fn unqueue(&self, queued: u64) -> Result<(), ActError> {
        self.act(Act::Queue(QueueChange::Delete { queued })).await
    }

    /// Sends a prompt that waits before all others, as [`Self::steer`] does.
    ///
    /// # Errors
    /// [`ActError`]
    pub async fn send_now(&self, queued: u64) -> Result<(), ActError> {
        self.act(Act::Queue(QueueChange::SendNow { queued })).await
    }

    /// Chooses options: kept in the thread, told to the agent now if it listens and whenever it
    /// opens the conversation. The journal says whether the agent took them
    /// ([`box_api::thread::Item::OptionSet`]).
    ///
    /// # Errors
    /// [`ActError`]; nothing is chosen then.
    pub async fn set_options(&self, chosen: Vec<ChosenOption>) -> Result<(), ActError> {
        if chosen.is_empty() || chosen.len() > CHOSEN_OPTIONS_MAX {
            return Err(ActError::Options);
        }
        self.act(Act::Choose(chosen)).await
    }

    /// Gives it a title; the agent's own are ignored from then on.
    ///
    /// # Errors
    /// [`ActError`]
    pub async fn rename(&self, title: &str) -> Result<(), ActError> {
        let title = title.trim();
        let chars = title.chars().count();
        if !(1..=TITLE_CHARS_MAX).contains(&chars) || title.chars().any(char::is_control) {
            return Err(ActError::Title);
        }
        let title = title.to_owned();
        self.act(Act::Rename { title }).await
    }

    /// Starts the agent and opens the conversation, though there is no prompt yet.
    ///
    /// # Errors
    /// [`ActError`]
    pub async fn open(&self) -> Result<(), ActError> {
        self.act(Act::Open).await
    }

    /// Ends one task of the background. `by` is told in the journal.
    ///
    /// # Errors
    /// [`ActError`]
    pub async fn stop_task(&self, task: String, by: String) -> Result<(), ActError> {
        self.act(Act::StopTask { task, by }).await
    }

    async fn act(&self, act: Act) -> Result<(), ActError> {
        let thread = self.thread();
        let done = self.ask(|reply| Mail::Act { act, reply }).await?;
        done.map_err(|why| ActError::Failed { thread, why })
    }
}
