//! One host per data folder, one per run folder: a lock with the name of its holder in it.

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// Longest note of a holder that is read.
const NOTE_BYTES_MAX: u64 = 4 << 10;
/// Together half a second, which two hosts started at once may as well wait.
const TRIES: u32 = 25;
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// A lock that is held until it is dropped or its process ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Who holds a lock, as they wrote it down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub pid: u32,
    pub since_ms: i64,
    pub run_dir: PathBuf,
}

/// Why a lock could not be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("could not use the lock `{path}`")]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// `holder` is absent while they have not written it down yet.
    #[error("another host holds `{path}`")]
    Held {
        path: PathBuf,
        holder: Option<Holder>,
    },
}

impl Lock {
    /// Takes the lock and writes down who holds it.
    ///
    /// # Errors
    /// [`LockError::Held`] names the other host.
    pub fn take(path: &Path, holder: &Holder) -> Result<Self, LockError> {
        let fail = |source| LockError::File {
            path: path.to_owned(),
            source,
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(fail)?;
        match patiently(&file) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                return Err(LockError::Held {
                    path: path.to_owned(),
                    holder: read(&mut file),
                });
            }
            Err(error) => return Err(fail(error.into())),
        }
        write(&mut file, holder).map_err(fail)?;
        Ok(Self { _file: file })
    }
}

/// A host that was killed is gone from its socket a moment before it is gone from its locks: the
/// kernel closes a process's files one after the other.
fn patiently(file: &File) -> Result<(), Errno> {
    for _ in 0..TRIES {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => std::thread::sleep(BETWEEN_TRIES),
            other => return other,
        }
    }
    flock(file, FlockOperation::NonBlockingLockExclusive)
}

fn read(file: &mut File) -> Option<Holder> {
    let mut note = String::new();
    file.take(NOTE_BYTES_MAX).read_to_string(&mut note).ok()?;
    Holder::parse(note.trim_end())
}

fn write(file: &mut File, holder: &Holder) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    write!(file, "{holder}")
}

/// One line, for people as well: `process 12, since 2026-11-29T15:00:00.000Z, at /run/box`.
impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since_ms = u64::try_from(self.since_ms).unwrap_or_default();
        let since = UNIX_EPOCH + Duration::from_millis(since_ms);
        let since = humantime::format_rfc3339_millis(since);
        write!(
            f,
            "process {}, since {since}, at {}",
            self.pid,
            self.run_dir.display()
        )
    }
}

impl Holder {
    fn parse(note: &str) -> Option<Self> {
        let (pid, rest) = note.strip_prefix("process ")?.split_once(", since ")?;
        let (since, run_dir) = rest.split_once(", at ")?;
        let since = humantime::parse_rfc3339(since)
            .ok()?
            .duration_since(UNIX_EPOCH)
            .ok()?;
        let since_ms = i64::try_from(since.as_millis()).ok()?;
        Some(Self {
            pid: pid.parse().ok()?,
            since_ms,
            run_dir: run_dir.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(pid: u32) -> Holder {
        Holder {
            pid,
            since_ms: 5,
            run_dir: "/run/box".into(),
        }
    }

    #[test]
    fn the_second_is_told_who_the_first_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = Lock::take(&path, &holder(10)).unwrap();
        match Lock::take(&path, &holder(20)) {
            Err(LockError::Held {
                holder: Some(found),
                ..
            }) => assert_eq!(found, holder(10)),
            other => panic!("{other:?}"),
        }
        drop(first);
        assert!(Lock::take(&path, &holder(20)).is_ok());
    }
}
