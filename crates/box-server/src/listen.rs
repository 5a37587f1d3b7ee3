//! The control socket: `control.sock` of the run folder.

use rustix::fs::{Mode, chmod};
use std::io;
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};
use tokio::net::UnixListener;

/// Why nobody could reach the host.
#[derive(Debug, thiserror::Error)]
#[error("could not listen at `{path}`")]
pub(crate) struct ListenError {
    path: PathBuf,
    #[source]
    source: io::Error,
}

/// Listens. A socket that lies there belongs to nobody: the lock of the run folder is held.
///
/// Every user may connect to root's host, and is judged by the kernel's word on who they are;
/// nobody else gets into a user's own run folder.
pub(crate) fn listen(path: &Path, host_uid: u32) -> Result<UnixListener, ListenError> {
    let fail = |source| ListenError {
        path: path.to_owned(),
        source,
    };
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fail(error)),
        Ok(()) | Err(_) => {}
    }
    let listener = StdListener::bind(path).map_err(fail)?;
    let mode = if host_uid == 0 {
        Mode::from_raw_mode(0o666)
    } else {
        Mode::RUSR | Mode::WUSR
    };
    chmod(path, mode).map_err(|error| fail(error.into()))?;
    listener.set_nonblocking(true).map_err(fail)?;
    UnixListener::from_std(listener).map_err(fail)
}
