//! Starts the process box-egress: the core's one home for starting a process.
//!
//! The listening socket is made here and handed over as standard input, so that box-egress needs no
//! right to any folder. Everything else is closed: standard output is `/dev/null`, standard error
//! the log. box-egress makes its own session and sandbox, and outlives the host.

use crate::paths::Paths;
use rustix::fs::{Mode, chmod};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with,
};
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::Stdio;

const CONNECTIONS_WAITING_MAX: i32 = 8;

/// How box-egress is started.
#[derive(Debug, Clone)]
pub struct Program {
    /// Usually `/proc/self/exe`: the running program itself, whatever lies at its path by now and
    /// whoever may walk there.
    pub program: OsString,
    pub arguments: Vec<OsString>,
    /// Who it runs as, uid and gid; absent: as the host, which may have nobody else to run it as.
    pub user: Option<u32>,
}

/// Starts box-egress, listening at the run folder's `egress.sock`.
///
/// # Errors
/// What the system said.
pub(crate) fn start(program: &Program, paths: &Paths) -> io::Result<()> {
    let socket = listener(&paths.egress_socket())?;
    let log = log_file(&paths.log)?;
    let mut command = tokio::process::Command::new(&program.program);
    command
        .args(&program.arguments)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(socket))
        .stdout(Stdio::null())
        .stderr(Stdio::from(log))
        .kill_on_drop(false);
    if let Some(user) = program.user {
        // Under root the supplementary groups are dropped with it (std::os::unix::process,
        // CommandExt::uid); an ordinary user's stay and mean nothing: it opens no file.
        command.gid(user).uid(user);
    }
    // Let go of at once: the runtime reaps it, should it end while this host lives.
    command.spawn().map(drop)
}

fn listener(path: &Path) -> io::Result<OwnedFd> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let socket = socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    chmod(path, Mode::RUSR | Mode::WUSR)?;
    listen(&socket, CONNECTIONS_WAITING_MAX)?;
    Ok(socket)
}

fn log_file(folder: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(folder.join("egress.log"))
}
