//! One thing a box needs, tried in a process that ends afterwards: this program again, with `--try`.

use crate::child;
use crate::complaint::Complaint;
use crate::host;
use crate::identity::OWN_EXECUTABLE;
use crate::output::Output;
use crate::verbs::Ended;
use box_runtime_native::attempts::{Attempt, Seen};
use box_runtime_native::rootless;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// A run folder nobody has: the attempt's namespace is its own, not that of boxes that run.
const NO_BOXES: &str = "no-boxes";

/// What one attempt said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    Seen(Seen),
    /// Why it did not work, and the kernel's number for that.
    Refused {
        errno: Option<i32>,
        why: String,
    },
}

impl Answer {
    pub(super) fn is(&self, errno: Errno) -> bool {
        match self {
            Self::Seen(_) => false,
            Self::Refused { errno: seen, .. } => *seen == Some(errno.raw_os_error()),
        }
    }

    fn refused(error: &io::Error) -> Self {
        Self::Refused {
            errno: error.raw_os_error(),
            why: error.to_string(),
        }
    }
}

/// Tries it in a process of its own.
pub(super) fn ask(attempt: Attempt) -> Answer {
    let mut command = child::command(OWN_EXECUTABLE);
    command
        .args(["doctor", "--json", "--try", attempt.name()])
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let ended = match command.output() {
        Ok(ended) => ended,
        Err(error) => return Answer::refused(&error),
    };
    serde_json::from_slice(&ended.stdout).unwrap_or_else(|_| Answer::Refused {
        errno: None,
        why: match ended.status.signal() {
            Some(signal) => format!("it was ended by signal {signal}"),
            None => format!("it ended with {}", ended.status.code().unwrap_or_default()),
        },
    })
}

/// The process of its own.
pub(super) fn answer(output: &mut Output, name: &str) -> Ended {
    let Some(attempt) = Attempt::named(name) else {
        return Err(Complaint::usage(
            "no-attempt",
            format!("there is nothing called `{name}` to try"),
        ));
    };
    let data = host::paths()?.data;
    let said = match make(attempt, &data) {
        Ok(seen) => Answer::Seen(seen),
        Err(error) => Answer::refused(&error),
    };
    output.object(&said)?;
    Ok(0)
}

/// With the privileges a host would have.
fn make(attempt: Attempt, data: &Path) -> io::Result<Seen> {
    rootless::enter(&data.join(NO_BOXES)).map_err(|error| match error {
        rootless::EnterError::System { source, .. } => source,
        other @ (rootless::EnterError::Threads(_) | rootless::EnterError::HalfMapped) => {
            io::Error::other(other.to_string())
        }
    })?;
    let folder = tempfile::Builder::new()
        .prefix("box-doctor-")
        .tempdir_in(nearest_folder(data))?;
    attempt.make(folder.path())
}

/// The folder, or the one above it that is there: it is made on the same file system.
pub(super) fn nearest_folder(path: &Path) -> PathBuf {
    let there = path.ancestors().find(|above| above.is_dir());
    there.unwrap_or(Path::new("/")).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_crosses_the_pipe_as_it_is() {
        for answer in [
            Answer::Seen(Seen::AllPorts),
            Answer::Seen(Seen::Version(6)),
            Answer::refused(&io::Error::from_raw_os_error(1)),
        ] {
            let line = serde_json::to_string(&answer).unwrap();
            assert_eq!(serde_json::from_str::<Answer>(&line).unwrap(), answer);
        }
        assert!(Answer::refused(&io::Error::from_raw_os_error(1)).is(Errno::PERM));
        assert!(!Answer::Seen(Seen::Works).is(Errno::PERM));
    }

    #[test]
    fn the_nearest_folder_is_one_that_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("not/there/yet");
        assert_eq!(nearest_folder(&deep), folder.path());
        assert_eq!(nearest_folder(folder.path()), folder.path());
    }
}
