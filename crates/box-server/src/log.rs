//! The host's log: JSON lines in a file that makes way for a new one when it has grown.
//!
//! What is logged holds no prompt, no output of an agent and no secret: only ids, names of steps,
//! and why something did not work. A thread of its own writes, so that nobody waits for the disk;
//! when it cannot keep up, lines are dropped and counted.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// A log that has grown so long makes way for a new one.
const LOG_BYTES_MAX: u64 = 8 << 20;
/// Old logs that are kept: `host.log.1` is the youngest.
const OLD_LOGS: usize = 4;
const LINES_QUEUED_MAX: usize = 4096;
/// How long the end of the host waits for its last lines.
const FLUSH_WAIT: Duration = Duration::from_secs(2);
const NAME: &str = "host.log";

enum Message {
    Line(Vec<u8>),
    /// Answers once every line before it is written.
    Flush(SyncSender<()>),
}

/// The way to the log's thread.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    lines: SyncSender<Message>,
    dropped: Arc<AtomicU64>,
}

impl Log {
    /// Logs into `folder` from now on. In a program that logs already, such as a test, only the
    /// file is made.
    ///
    /// # Errors
    /// When the log cannot be opened.
    pub(crate) fn start(folder: &Path) -> io::Result<Self> {
        let mut file = LogFile::open(folder)?;
        let (lines, queued) = sync_channel(LINES_QUEUED_MAX);
        let log = Self {
            lines,
            dropped: Arc::default(),
        };
        let dropped = Arc::clone(&log.dropped);
        std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write_all(&mut file, &queued, &dropped))?;
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .json()
            .flatten_event(true)
            .with_max_level(tracing::Level::INFO)
            .with_writer(move || writer.clone());
        drop(subscriber.try_init());
        Ok(log)
    }

    /// Waits until what was logged is in the file.
    pub(crate) fn flush(&self) {
        let (done, written) = sync_channel(1);
        if self.lines.send(Message::Flush(done)).is_ok() {
            written.recv_timeout(FLUSH_WAIT).unwrap_or_default();
        }
    }
}

impl Write for Log {
    /// One call a line: that is how the subscriber writes.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.lines.try_send(Message::Line(line.to_vec())).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_all(file: &mut LogFile, queued: &Receiver<Message>, dropped: &AtomicU64) {
    while let Ok(message) = queued.recv() {
        match message {
            Message::Line(line) => {
                let lost = dropped.swap(0, Ordering::Relaxed);
                if lost > 0 {
                    let note = format!(
                        "{{\"level\":\"WARN\",\"message\":\"lines dropped\",\"count\":{lost}}}\n"
                    );
                    // A full disk is no reason to end anything.
                    file.append(note.as_bytes()).unwrap_or_default();
                }
                file.append(&line).unwrap_or_default();
            }
            Message::Flush(done) => drop(done.try_send(())),
        }
    }
}

/// The file and what came before it.
#[derive(Debug)]
struct LogFile {
    path: PathBuf,
    file: File,
    bytes: u64,
}

impl LogFile {
    fn open(folder: &Path) -> io::Result<Self> {
        let path = folder.join(NAME);
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&path)?;
        let bytes = file.metadata()?.len();
        Ok(Self { path, file, bytes })
    }

    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        if self.bytes >= LOG_BYTES_MAX {
            self.make_way()?;
        }
        self.file.write_all(line)?;
        self.bytes += u64::try_from(line.len()).unwrap_or(u64::MAX);
        Ok(())
    }

    fn make_way(&mut self) -> io::Result<()> {
        let old = |number: usize| self.path.with_file_name(format!("{NAME}.{number}"));
        for number in (1..OLD_LOGS).rev() {
            match std::fs::rename(old(number), old(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        std::fs::rename(&self.path, old(1))?;
        let folder = self.path.parent().unwrap_or(Path::new("/")).to_owned();
        *self = Self::open(&folder)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_has_grown_makes_way_and_the_oldest_goes() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = LogFile::open(folder.path()).unwrap();
        let filler = vec![b'x'; usize::try_from(LOG_BYTES_MAX).unwrap()];
        for number in 0..OLD_LOGS + 3 {
            log.append(format!("{number}\n").as_bytes()).unwrap();
            log.append(&filler).unwrap();
        }
        log.append(b"last\n").unwrap();
        let mut names: Vec<String> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(
            names,
            [
                "host.log",
                "host.log.1",
                "host.log.2",
                "host.log.3",
                "host.log.4"
            ]
        );
        assert_eq!(std::fs::read(folder.path().join(NAME)).unwrap(), b"last\n");
        let youngest = std::fs::read(folder.path().join("host.log.1")).unwrap();
        assert!(youngest.starts_with(b"6\n"));
    }
}
