//! Copies a box's folders, and tells a person who waits for it.

use crate::storage::Cradle;
use crate::storage::copy::Copied;
use crate::storage::layout::COPIED;
use crate::storage::measure::measure;
use crate::storage::walk::FOLDER;
use box_api::snapshot::CopyMethod;
use box_runtime::{Progress, RuntimeError};
use rustix::fd::AsFd as _;
use rustix::fs::{CWD, Mode, openat};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Copies up to this size are nobody's concern.
const SILENT_BYTES: u64 = 64 << 20;
const TOLD_EVERY: Duration = Duration::from_secs(1);
/// Lines nobody has read yet; more are dropped, they are only progress.
const LINES_MAX: usize = 16;

/// Sends lines to whoever waits.
#[derive(Debug)]
pub(crate) struct Teller {
    lines: mpsc::Sender<String>,
    method: CopyMethod,
}

/// Does blocking work to its end, even when whoever asked goes away, and passes its lines on.
pub(crate) async fn work<T: Send + 'static>(
    method: CopyMethod,
    progress: &dyn Progress,
    work: impl FnOnce(&Teller) -> Result<T, RuntimeError> + Send + 'static,
) -> Result<T, RuntimeError> {
    let (lines, mut told) = mpsc::channel(LINES_MAX);
    let teller = Teller { lines, method };
    let done = tokio::task::spawn_blocking(move || work(&teller));
    while let Some(line) = told.recv().await {
        progress.say(&line);
    }
    done.await
        .map_err(|error| RuntimeError::engine("finish what was asked", error))?
}

impl Teller {
    pub(crate) fn say(&self, line: String) {
        // Full or nobody there: it is only progress.
        drop(self.lines.try_send(line));
    }

    /// Copies the folders of a box or a snapshot into a cradle. A full copy of some size is
    /// announced, and told of while it goes on.
    pub(crate) fn copy(&self, cradle: &Cradle, from: &Path) -> io::Result<Copied> {
        let whole = match self.method {
            CopyMethod::Full => self.announce(from)?,
            CopyMethod::Subvolume | CopyMethod::Reflink => None,
        };
        let mut last = Instant::now();
        let mut told = |copied: &Copied| {
            if copied.bytes < SILENT_BYTES && copied.files < 10_000 || last.elapsed() < TOLD_EVERY {
                return;
            }
            last = Instant::now();
            let of = whole.map_or(String::new(), |whole| format!(" of {}", size(whole)));
            let (bytes, files) = (size(copied.bytes), copied.files);
            self.say(format!("copied {bytes}{of} in {files} files"));
        };
        cradle.copy(from, &COPIED, &mut told)
    }

    fn announce(&self, from: &Path) -> io::Result<Option<u64>> {
        let mut whole = 0;
        for part in COPIED {
            let folder = openat(CWD, from.join(part), FOLDER, Mode::empty())?;
            whole += measure(folder.as_fd())?;
        }
        if whole < SILENT_BYTES {
            return Ok(None);
        }
        self.say(format!(
            "copying {} in full: this disk cannot share content between files (`box up --store \
             btrfs` makes one that can)",
            size(whole)
        ));
        Ok(Some(whole))
    }
}

pub(crate) fn size(bytes: u64) -> String {
    let mib = bytes >> 20;
    if mib < 1024 {
        format!("{mib} MiB")
    } else {
        format!("{}.{} GiB", mib / 1024, mib % 1024 * 10 / 1024)
    }
}
