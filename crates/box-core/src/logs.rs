//! What the durable processes of a box wrote, kept on the host after box-guest let it go.
//!
//! Whoever takes a process's output from the guest (the thread driver, for an agent's standard
//! error) appends it here before it acknowledges it. Two files a process, the newer at most
//! 4 MiB; the older one is what the newer grew out of.

use crate::boxes::{self, FindError};
use crate::caller::Caller;
use crate::host::Host;
use box_api::guest::ProcessName;
use box_api::{BoxId, BoxName};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use tokio::sync::{mpsc, watch};

/// A log file that has grown so long makes way for a new one.
const LOG_BYTES_MAX: u64 = 4 << 20;
/// Read at once, and so the most a piece holds.
const PIECE_BYTES_MAX: usize = 64 << 10;
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

/// Adds to a process's log.
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
    host.logs.0.send_modify(|count| *count += 1);
    Ok(())
}

fn write(folder: &Path, path: &Path, text: &[u8]) -> io::Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    if std::fs::metadata(path).is_ok_and(|found| found.len() >= LOG_BYTES_MAX) {
        std::fs::rename(path, path.with_extension("log.1"))?;
    }
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text)
}

/// The log of a process from its beginning, in pieces; the channel ends with it.
///
/// # Errors
/// [`LogsError`]
pub async fn read(
    host: &Host,
    caller: &Caller,
    name: &BoxName,
    process: Option<&str>,
    follow: Follow,
) -> Result<mpsc::Receiver<Vec<u8>>, LogsError> {
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
    let (pieces, reader) = mpsc::channel(PIECES_QUEUED_MAX);
    let path = folder.join(format!("{process}.log"));
    // Before the first read: what is written in between would be missed.
    let changes = host.logs.0.subscribe();
    tokio::task::spawn(async move {
        if let Err(error) = copy(path, pieces, changes, follow).await {
            tracing::warn!(%error, "a log could not be read to its end");
        }
    });
    Ok(reader)
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

async fn copy(
    path: PathBuf,
    pieces: mpsc::Sender<Vec<u8>>,
    mut changes: watch::Receiver<u64>,
    follow: Follow,
) -> io::Result<()> {
    if let Some(older) = open(&path.with_extension("log.1"))? {
        drain(older, &pieces).await?;
    }
    let Some(mut file) = open(&path)? else {
        return Ok(());
    };
    loop {
        changes.mark_unchanged();
        file = match drain(file, &pieces).await? {
            Some(file) => file,
            None => return Ok(()),
        };
        if follow == Follow::No {
            return Ok(());
        }
        if let Some(newer) = open(&path)?.filter(|newer| !same(&file, newer)) {
            // What was added to the old one before it made way.
            if drain(file, &pieces).await?.is_none() {
                return Ok(());
            }
            file = newer;
            continue;
        }
        tokio::select! {
            told = changes.changed() => if told.is_err() { return Ok(()) },
            () = pieces.closed() => return Ok(()),
        }
    }
}

fn open(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn same(one: &File, other: &File) -> bool {
    let number = |file: &File| file.metadata().map(|found| (found.dev(), found.ino())).ok();
    number(one) == number(other)
}

/// Sends what is left of a file; `None` when nobody reads any more.
async fn drain(mut file: File, pieces: &mpsc::Sender<Vec<u8>>) -> io::Result<Option<File>> {
    loop {
        let read = tokio::task::spawn_blocking(move || {
            let mut piece = vec![0; PIECE_BYTES_MAX];
            let count = file.read(&mut piece)?;
            piece.truncate(count);
            io::Result::Ok((file, piece))
        });
        let piece;
        (file, piece) = read.await.map_err(io::Error::other)??;
        if piece.is_empty() {
            return Ok(Some(file));
        }
        if pieces.send(piece).await.is_err() {
            return Ok(None);
        }
    }
}

#[cfg(test)]
mod tests;
