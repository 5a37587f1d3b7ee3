//! The thread that owns the writing connection: one change, one transaction; grouped changes share
//! a commit.

use super::{Durability, StoreError};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

/// Longest a grouped change waits for its commit.
const GROUP_WINDOW: Duration = Duration::from_millis(20);
/// A group is committed when it has this many changes, window or not.
const GROUP_CHANGES_MAX: usize = 512;

/// Tells the caller how it ended; the argument is what kept the commit from happening.
type Answer = Box<dyn FnOnce(Result<(), StoreError>) + Send>;
/// Runs the change, or learns why no transaction could be had. `Err` means undo it and tell now.
type Change =
    Box<dyn FnOnce(Result<&Transaction<'_>, StoreError>) -> Result<Answer, Answer> + Send>;

/// A change on its way to the writer.
pub(super) struct Write {
    durability: Durability,
    change: Change,
}

impl Write {
    pub(super) fn new<T, F>(
        durability: Durability,
        change: F,
        answer: oneshot::Sender<Result<T, StoreError>>,
    ) -> Self
    where
        F: FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
        T: Send + 'static,
    {
        let change: Change = Box::new(move |transaction| {
            let outcome = transaction.and_then(|transaction| Ok(change(transaction)?));
            let worked = outcome.is_ok();
            let tell: Answer = Box::new(move |committed| {
                // Nobody waits any more: the change stands all the same.
                drop(answer.send(committed.and(outcome)));
            });
            if worked { Ok(tell) } else { Err(tell) }
        });
        Self { durability, change }
    }
}

/// Works until every [`super::Store`] is gone. Runs on its own thread.
pub(super) fn run(connection: &Connection, mut queued: mpsc::Receiver<Write>) {
    // Only for the timer of the group window: this thread does nothing else.
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return tracing::error!(%error, "the database writer could not start"),
    };
    runtime.block_on(async {
        let mut next = queued.recv().await;
        while let Some(write) = next {
            next = match write.durability {
                Durability::Full => {
                    commit_on_disk(connection, write);
                    queued.recv().await
                }
                Durability::Grouped | Durability::Prompt => {
                    match commit_group(connection, write, &mut queued).await {
                        Some(left) => Some(left),
                        None => queued.recv().await,
                    }
                }
            };
        }
    });
}

/// One change, one commit that is on disk when it is answered.
fn commit_on_disk(connection: &Connection, write: Write) {
    // The pragma cannot change inside a transaction, so such a change never joins a group.
    let full = connection.pragma_update(None, "synchronous", "full");
    match full
        .map_err(StoreError::from)
        .and_then(|()| Group::open(connection))
    {
        Ok(mut group) => {
            group.run(write);
            group.commit();
        }
        Err(error) => refuse(write, error),
    }
    if let Err(error) = connection.pragma_update(None, "synchronous", "normal") {
        tracing::warn!(%error, "the database stays at synchronous=full");
    }
}

/// Changes that arrive within the window, one commit. Gives back a change that must be on disk and
/// so cannot join.
async fn commit_group(
    connection: &Connection,
    first: Write,
    queued: &mut mpsc::Receiver<Write>,
) -> Option<Write> {
    let deadline = Instant::now() + GROUP_WINDOW;
    let mut group = match Group::open(connection) {
        Ok(group) => group,
        Err(error) => {
            refuse(first, error);
            return None;
        }
    };
    let mut in_a_hurry = first.durability == Durability::Prompt;
    group.run(first);
    let mut left = None;
    while !in_a_hurry && !group.undone() && group.answers.len() < GROUP_CHANGES_MAX {
        match timeout_at(deadline, queued.recv()).await {
            Ok(Some(write)) if write.durability == Durability::Full => {
                left = Some(write);
                break;
            }
            Ok(Some(write)) => {
                in_a_hurry = write.durability == Durability::Prompt;
                group.run(write);
            }
            Ok(None) | Err(_) => break,
        }
    }
    group.commit();
    left
}

fn refuse(write: Write, error: StoreError) {
    if let Err(tell) = (write.change)(Err(error)) {
        tell(Ok(()));
    }
}

/// Changes of one transaction and whom to tell about its commit.
struct Group<'c> {
    transaction: Transaction<'c>,
    answers: Vec<Answer>,
}

impl<'c> Group<'c> {
    fn open(connection: &'c Connection) -> Result<Self, StoreError> {
        let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
        Ok(Self {
            transaction,
            answers: Vec::new(),
        })
    }

    /// Runs one change behind a savepoint, so that its failure undoes only itself.
    fn run(&mut self, write: Write) {
        if let Err(error) = self.transaction.execute_batch("SAVEPOINT one_change") {
            return refuse(write, error.into());
        }
        match (write.change)(Ok(&self.transaction)) {
            Ok(tell) => match self.transaction.execute_batch("RELEASE one_change") {
                Ok(()) => self.answers.push(tell),
                Err(error) => tell(Err(error.into())),
            },
            Err(tell) => {
                let undo = "ROLLBACK TO one_change; RELEASE one_change";
                if let Err(error) = self.transaction.execute_batch(undo) {
                    tracing::warn!(%error, "a change could not be undone on its own");
                }
                tell(Ok(()));
            }
        }
    }

    /// Whether `SQLite` has rolled the whole transaction back, as it does when the disk is full.
    fn undone(&self) -> bool {
        self.transaction.is_autocommit()
    }

    fn commit(self) {
        let committed = if self.undone() {
            Err(StoreError::Undone)
        } else {
            self.transaction.commit().map_err(StoreError::from)
        };
        for tell in self.answers {
            tell(committed.clone());
        }
    }
}
