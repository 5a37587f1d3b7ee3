//! The database: one `SQLite` file, one writer, one reader.
//!
//! Both live on threads of their own behind bounded queues, so no async task ever waits in `SQLite`.
//! A write is a closure that gets the open transaction; when [`Store::write`] answers `Ok`, it is
//! committed as durably as was asked. A write once queued happens even if its caller goes away.

pub mod schema;
mod writer;

use rusqlite::{Connection, OpenFlags, Transaction};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Writes that may wait for the writer before callers wait for room.
const WRITES_QUEUED_MAX: usize = 1024;
const READS_QUEUED_MAX: usize = 1024;
/// How long `SQLite` itself waits for a lock. Nobody else writes, so only a checkpoint holds one.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How surely a write must be on disk when it is answered. The death of the host loses none of
/// them; they differ in what a power cut may undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// May share a commit with others that arrive within 20 ms; a power cut may undo it.
    Grouped,
    /// Commits at once; a power cut may undo it.
    Prompt,
    /// Commits at once and is on disk (`synchronous=FULL`).
    Full,
}

/// Why the database did not do what it was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    #[error("the database has layout {found}, newer than {known}, the newest this build knows")]
    Newer { found: i64, known: i64 },
    #[error("could not open the database `{path}`")]
    Open {
        path: PathBuf,
        #[source]
        source: Arc<rusqlite::Error>,
    },
    #[error("could not make the database `{path}`")]
    Make {
        path: PathBuf,
        #[source]
        source: Arc<std::io::Error>,
    },
    #[error("could not bring the database to layout {step}")]
    Step {
        step: i64,
        #[source]
        source: Arc<rusqlite::Error>,
    },
    #[error("the disk is full")]
    DiskFull(#[source] Arc<rusqlite::Error>),
    #[error("the database refused")]
    Sql(#[source] Arc<rusqlite::Error>),
    #[error("the change was undone with another that failed")]
    Undone,
    #[error("the thread `{0}` is gone")]
    Gone(&'static str),
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull) {
            Self::DiskFull(Arc::new(error))
        } else {
            Self::Sql(Arc::new(error))
        }
    }
}

type Query = Box<dyn FnOnce(&Connection) + Send>;

/// The database. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    writes: mpsc::Sender<writer::Write>,
    reads: mpsc::Sender<Query>,
}

impl Store {
    /// Opens the database at `path`, makes it if it is not there and brings it to the newest
    /// layout. Blocks: called once, before the host serves.
    ///
    /// # Errors
    /// [`StoreError::Newer`] when a later build made it; nothing is changed then.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let fail = |source| StoreError::Open {
            path: path.to_owned(),
            source: Arc::new(source),
        };
        make_private(path)?;
        let mut connection = Connection::open(path).map_err(fail)?;
        prepare(&connection).map_err(fail)?;
        schema::upgrade(&mut connection, schema::STEPS)?;

        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let reader = Connection::open_with_flags(path, flags).map_err(fail)?;
        reader.busy_timeout(BUSY_TIMEOUT).map_err(fail)?;

        let (writes, queued) = mpsc::channel(WRITES_QUEUED_MAX);
        spawn("database-writer", move || writer::run(&connection, queued))?;
        let (reads, mut queued) = mpsc::channel::<Query>(READS_QUEUED_MAX);
        spawn("database-reader", move || {
            while let Some(query) = queued.blocking_recv() {
                query(&reader);
            }
        })?;
        Ok(Self { writes, reads })
    }

    /// Runs `change` in a transaction of its own and commits it. An `Err` undoes just this change.
    ///
    /// # Errors
    /// What the database said; the change is undone then.
    pub async fn write<T, F>(&self, durability: Durability, change: F) -> Result<T, StoreError>
    where
        F: FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
        T: Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let write = writer::Write::new(durability, change, answer);
        self.writes
            .send(write)
            .await
            .map_err(|_| StoreError::Gone("database-writer"))?;
        answered
            .await
            .map_err(|_| StoreError::Gone("database-writer"))?
    }

    /// Runs `query` on the reading connection. It sees every write answered before.
    ///
    /// # Errors
    /// What the database said.
    pub async fn read<T, F>(&self, query: F) -> Result<T, StoreError>
    where
        F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
        T: Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let query: Query = Box::new(move |connection| {
            // Nobody waits any more: the answer has no reader, and that is all.
            drop(answer.send(query(connection).map_err(StoreError::from)));
        });
        self.reads
            .send(query)
            .await
            .map_err(|_| StoreError::Gone("database-reader"))?;
        answered
            .await
            .map_err(|_| StoreError::Gone("database-reader"))?
    }
}

/// The file is its owner's alone, and what `SQLite` puts beside it takes its mode from it: prompts
/// and what agents said are in there.
fn make_private(path: &Path) -> Result<(), StoreError> {
    let made = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path);
    made.map(drop).map_err(|source| StoreError::Make {
        path: path.to_owned(),
        source: Arc::new(source),
    })
}

/// Settings of the writing connection; see <https://sqlite.org/pragma.html>.
fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "normal")?;
    connection.pragma_update(None, "foreign_keys", "on")?;
    connection.pragma_update(None, "journal_size_limit", 64 << 20)
}

fn spawn(name: &'static str, work: impl FnOnce() + Send + 'static) -> Result<(), StoreError> {
    let thread = std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work);
    thread.map(drop).map_err(|_| StoreError::Gone(name))
}

#[cfg(test)]
mod tests;
