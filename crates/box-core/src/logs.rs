//! What the durable processes of a box wrote, kept on the host after box-guest let it go.
//!
//! Whoever takes a process's output from the guest (the thread driver for an agent's standard
//! error, [`crate::processes`] for what a person started) appends it here before it acknowledges
//! it. Two files a process, the newer at most 4 MiB; the older one is what the newer grew out of. A
//! third says how many bytes before these were dropped, and readers are told.

use crate::boxes::{self, FindError};
use crate::caller::Caller;
use crate::host::Host;
use crate::processes::rows::{self as detached, Detached};
use crate::store::{Store, StoreError};
use box_api::guest::ProcessName;
use box_api::{BoxId, BoxName};
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use tokio::sync::{mpsc, watch};

/// A log file that has grown so long makes way for a new one.
const LOG_BYTES_MAX: u64 = 4 << 20;
/// Read at once, and so the most a piece holds.
const PIECE_BYTES_MAX: usize = 64 << 10;
/// What the log grew out of, and how much was dropped before that.
const OLDER: &str = "log.1";
const DROPPED: &str = "log.dropped";
/// Pieces a slow reader may be behind before the file is read no further.
const PIECES_QUEUED_MAX: usize = 4;

/// Why a log cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum LogsError {
    #[error(transparent)]
    Find(#[from] FindError),
    #[error("no process of box `{0}` has written anything yet")]
    Nothing(BoxName),
    #[error("box `{name}` has no log of a process `{process}`")]
    UnknownProcess {
        name: BoxName,
        process: String,
        known: Vec<String>,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("could not read the logs of box `{name}`")]
    Read {
        name: BoxName,
        #[source]
        source: io::Error,
    },
}

/// Whether to wait for what comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    Yes,
    No,
}

/// Wakes the followers of a log. One for the whole host: followers look whether it was theirs.
#[derive(Debug)]
pub struct Logs(watch::Sender<u64>);

impl Default for Logs {
    fn default() -> Self {
        Self(watch::channel(0).0)
    }
}

impl Logs {
    /// A log grew, or its process ended.
    pub(crate) fn tell(&self) {
        self.0.send_modify(|count| *count += 1);
    }
}

/// Adds to a process's log, which is there afterwards even when there is nothing to add.
///
/// # Errors
/// What the file system said.
pub async fn append(
    host: &Host,
    id: &BoxId,
    process: &ProcessName,
    text: Vec<u8>,
) -> io::Result<()> {
    let folder = host.paths.logs(id);
    let file = folder.join(format!("{process}.log"));
    let written = tokio::task::spawn_blocking(move || write(&folder, &file, &text));
    written.await.map_err(io::Error::other)??;
    host.logs.tell();
    Ok(())
}

/// Adds to a detached process's log what follows the part its row states; gives the new length.
///
/// # Errors
/// What the file system said.
pub(crate) async fn extend(host: &Host, process: &Detached, text: Vec<u8>) -> io::Result<u64> {
    let folder = host.paths.logs(&process.box_id);
    let file = folder.join(format!("{}.log", process.name));
    let stated = process.kept.log_bytes;
    let written = tokio::task::spawn_blocking(move || {
        forget_unstated(&file, stated)?;
        write(&folder, &file, &text)
    });
    written.await.map_err(io::Error::other)?
}

/// Drops the log of a process, for another of its name. What cannot be removed is written over.
pub(crate) async fn remove(host: &Host, id: &BoxId, process: &ProcessName) {
    let log = host.paths.logs(id).join(format!("{process}.log"));
    for path in [log.with_extension(OLDER), log.with_extension(DROPPED), log] {
        drop(tokio::fs::remove_file(path).await);
    }
}

/// What a host wrote that died before it could say so comes again from the guest.
fn forget_unstated(path: &Path, stated: u64) -> io::Result<()> {
    let found = match std::fs::metadata(path) {
        Ok(found) => found.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    // Shorter than stated: it is the successor of the file that was that long, and all of it is
    // unstated, for each statement names the file of its time.
    let keep = if found < stated { 0 } else { stated };
    if found != keep {
        OpenOptions::new().write(true).open(path)?.set_len(keep)?;
    }
    Ok(())
}

/// Gives the length of the log afterwards.
fn write(folder: &Path, path: &Path, text: &[u8]) -> io::Result<u64> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    if std::fs::metadata(path).is_ok_and(|found| found.len() >= LOG_BYTES_MAX) {
        make_way(path)?;
    }
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text)?;
    Ok(file.metadata()?.len())
}

/// The log becomes the older one; the one before is counted and dropped. Noted first, with the
/// number of the file it is about, so that whoever looks in between, or after a crash, knows.
fn make_way(path: &Path) -> io::Result<()> {
    let files = Files::look(path)?;
    let dropped = files.dropped + length(files.older.as_ref())?;
    let which = number(files.newer.as_ref()).unwrap_or_default();
    let fresh = path.with_extension("log.noting");
    std::fs::write(&fresh, format!("{dropped} {which}"))?;
    std::fs::rename(fresh, path.with_extension(DROPPED))?;
    std::fs::rename(path, path.with_extension(OLDER))
}

/// A log that is read.
#[derive(Debug)]
pub struct Reading {
    pub process: String,
    pub whose: Whose,
    /// Its text from the beginning; the channel ends with it.
    pub pieces: mpsc::Receiver<Vec<u8>>,
}

/// Who started the process of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// A person, with `exec --detach`. Whoever follows it is done when it ends.
    Detached,
    /// A thread, whose conversation is elsewhere.
    Agents,
}

/// The log of a process from its beginning.
///
/// # Errors
/// [`LogsError`]
pub async fn read(
    host: &Host,
    caller: &Caller,
    name: &BoxName,
    process: Option<&str>,
    follow: Follow,
) -> Result<Reading, LogsError> {
    let record = boxes::find(host, caller, name).await?;
    let folder = host.paths.logs(&record.id);
    let failed = |source| LogsError::Read {
        name: name.clone(),
        source,
    };
    let known = known(&folder).map_err(failed)?;
    let newest = known
        .first()
        .ok_or_else(|| LogsError::Nothing(name.clone()))?;
    let process = process.unwrap_or(newest);
    // Only what was listed is opened, so that no name leads out of the folder.
    let Some(process) = known.iter().find(|known| *known == process) else {
        let process = process.to_owned();
        return Err(LogsError::UnknownProcess {
            name: name.clone(),
            process,
            known,
        });
    };
    let process = process.clone();
    let over = Over {
        store: host.store.clone(),
        id: record.id,
        process: process.clone(),
    };
    let whose = match over.look().await? {
        Some(_) => Whose::Detached,
        None => Whose::Agents,
    };
    let (pieces, reader) = mpsc::channel(PIECES_QUEUED_MAX);
    let path = folder.join(format!("{process}.log"));
    // Before the first read: what is written in between would be missed.
    let changes = host.logs.0.subscribe();
    let until = match (follow, whose) {
        (Follow::No, _) => Until::Now,
        (Follow::Yes, Whose::Detached) => Until::Over(over),
        (Follow::Yes, Whose::Agents) => Until::Left,
    };
    tokio::task::spawn(async move {
        if let Err(error) = copy(path, pieces, changes, until).await {
            tracing::warn!(%error, "a log could not be read to its end");
        }
    });
    Ok(Reading {
        process,
        whose,
        pieces: reader,
    })
}

/// How long a log is read.
#[derive(Debug)]
enum Until {
    /// To where it ends now.
    Now,
    /// Until its reader goes.
    Left,
    /// Until its process has ended.
    Over(Over),
}

/// Tells whether a detached process has ended.
#[derive(Debug)]
struct Over {
    store: Store,
    id: BoxId,
    process: String,
}

impl Over {
    /// `None` for a process that is no detached one, or no more.
    async fn look(&self) -> Result<Option<bool>, StoreError> {
        let (id, process) = (self.id, self.process.clone());
        self.store
            .read(move |tables| detached::has_ended(tables, &id, &process))
            .await
    }
}

impl Until {
    async fn has_come(&self) -> bool {
        match self {
            Self::Now => true,
            Self::Left => false,
            // One that is not in the table any more has ended as well.
            Self::Over(over) => over.look().await.is_ok_and(|ended| ended != Some(false)),
        }
    }
}

/// Names of the processes with a log, the one written to last first.
fn known(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut logs = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let Some(process) = name.to_str().and_then(|name| name.strip_suffix(".log")) else {
            continue;
        };
        logs.push((entry.metadata()?.modified()?, process.to_owned()));
    }
    logs.sort();
    Ok(logs.into_iter().rev().map(|(_, process)| process).collect())
}

/// Sends a log from its beginning. Positions count from the first byte the process ever wrote, so
/// that a reader that is overtaken knows what it missed.
async fn copy(
    path: PathBuf,
    pieces: mpsc::Sender<Vec<u8>>,
    mut changes: watch::Receiver<u64>,
    until: Until,
) -> io::Result<()> {
    let mut at = 0;
    loop {
        changes.mark_unchanged();
        // Before the last look at the files: whatever the process wrote is in them by then.
        let over = until.has_come().await;
        let Files {
            dropped,
            older,
            newer,
        } = Files::look(&path)?;
        if at < dropped {
            let missed = dropped - at;
            let mark = format!("[box: {missed} bytes before this were dropped]\n");
            if pieces.send(mark.into_bytes()).await.is_err() {
                return Ok(());
            }
            at = dropped;
        }
        let mut begins = dropped;
        for file in older.into_iter().chain(newer) {
            let length = file.metadata()?.len();
            match drain(file, at.saturating_sub(begins), &pieces).await? {
                Some(end) => at = at.max(begins + end),
                None => return Ok(()),
            }
            begins += length;
        }
        if over {
            return Ok(());
        }
        tokio::select! {
            told = changes.changed() => if told.is_err() { return Ok(()) },
            () = pieces.closed() => return Ok(()),
        }
    }
}

/// The files of one log, as they are at one moment.
struct Files {
    /// Bytes before the older one.
    dropped: u64,
    older: Option<File>,
    newer: Option<File>,
}

impl Files {
    fn look(path: &Path) -> io::Result<Self> {
        loop {
            let noted = noted(path);
            let older = open(&path.with_extension(OLDER))?;
            let newer = open(path)?;
            // One that made way in between would be seen twice, or not at all.
            let now = open(path)?;
            if number(now.as_ref()) == number(newer.as_ref()) && self::noted(path) == noted {
                let dropped = match noted {
                    None => 0,
                    Some((dropped, which)) if number(older.as_ref()) == Some(which) => dropped,
                    // Noted, and not yet done.
                    Some((dropped, _)) => dropped - length(older.as_ref())?.min(dropped),
                };
                return Ok(Self {
                    dropped,
                    older,
                    newer,
                });
            }
        }
    }
}

/// What is noted of a log: bytes dropped once the file of this number is the older one.
fn noted(path: &Path) -> Option<(u64, u64)> {
    let text = std::fs::read_to_string(path.with_extension(DROPPED)).ok()?;
    let (dropped, number) = text.split_once(' ')?;
    Some((dropped.parse().ok()?, number.parse().ok()?))
}

fn number(file: Option<&File>) -> Option<u64> {
    file?.metadata().map(|found| found.ino()).ok()
}

fn length(file: Option<&File>) -> io::Result<u64> {
    file.map_or(Ok(0), |file| Ok(file.metadata()?.len()))
}

fn open(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Sends what is left of a file from `from` on and says where that ended; `None` when nobody reads
/// any more.
async fn drain(
    mut file: File,
    from: u64,
    pieces: &mpsc::Sender<Vec<u8>>,
) -> io::Result<Option<u64>> {
    let mut at = from;
    loop {
        let read = tokio::task::spawn_blocking(move || {
            let mut piece = vec![0; PIECE_BYTES_MAX];
            let count = file.read_at(&mut piece, at)?;
            piece.truncate(count);
            io::Result::Ok((file, piece))
        });
        let piece;
        (file, piece) = read.await.map_err(io::Error::other)??;
        if piece.is_empty() {
            return Ok(Some(at));
        }
        at += piece.len() as u64;
        if pieces.send(piece).await.is_err() {
            return Ok(None);
        }
    }
}

#[cfg(test)]
mod tests;
