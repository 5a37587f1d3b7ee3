//! The way out of a box. One process serves every box of a deployment: it answers their name
//! queries, decides about their connections, and puts credentials in place of placeholders.
//!
//! # How it is started
//!
//! The `box` binary runs itself again with a hidden verb and calls [`run`] before it starts any
//! thread or runtime:
//!
//! ```text
//! box egress --host-uid <uid>
//! ```
//!
//! | | |
//! | --- | --- |
//! | standard input | the listening control socket, made by [`listen`]; the host binds it in its run folder because box-egress may not open files |
//! | standard output, standard error | `/dev/null` or a log file; a panic's message goes there, never a secret |
//! | other descriptors | none (std closes them on exec) |
//! | uid | under root [`UID`] (with that gid and no supplementary groups); rootless the user's own |
//! | environment | empty; nothing is read from it |
//! | working folder | `/` |
//! | `--host-uid` | the uid whose processes may connect (`SO_PEERCRED`) |
//!
//! It leaves the session of whoever started it, enters its sandbox ([`sandbox`]) and serves until a
//! host sends `Shutdown`. It outlives the host: a host that comes back connects to the same socket.
//! It starts empty; until it is configured and a box is registered, everything is refused.
//!
//! # A connection
//!
//! `accept` (which box, from the socket it came on) → `target` (one host, named the same
//! everywhere) → `policy` → `resolve` (every address public) → `dial` → `tunnel` or `intercept`.
//! Each stage's output can be made by that stage alone and is the only input of the next, so that
//! a skipped check does not compile.

#![forbid(unsafe_code)]

mod accept;
mod account;
mod address;
mod clock;
mod connect;
mod context;
mod control;
mod dial;
mod dns;
mod events;
#[cfg(test)]
mod fuzz;
mod grants;
mod http;
mod intercept;
mod limits;
mod listen;
mod names;
mod own_address;
mod plain;
mod policy;
mod refuse;
mod resolve;
pub mod sandbox;
mod secret;
mod signals;
mod socket;
mod spent;
mod tally;
mod target;
mod telling;
#[cfg(test)]
mod testing;
mod tunnel;
mod usage;

use control::Keeper;
use control::socket::ControlListener;
use rustix::fs::{Mode, unlink};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, socket_with};
use sandbox::SandboxError;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

/// The uid box-egress runs as under root; its gid is the same number.
pub const UID: u32 = 1_999_999_001;
/// Threads that serve connections; more would not make two cores faster.
const THREADS_MAX: usize = 8;
const BACKLOG: i32 = 16;

/// What [`run`] is given.
#[derive(Debug)]
pub struct Options {
    /// The listening control socket, see [`listen`].
    pub control: OwnedFd,
    /// The uid that may connect to it.
    pub host_uid: u32,
    /// Told to hosts that connect.
    pub build: String,
}

impl Options {
    /// With the control socket that came as standard input.
    ///
    /// # Errors
    /// When standard input is closed.
    pub fn from_standard_input(host_uid: u32, build: String) -> io::Result<Self> {
        let control = io::stdin().as_fd().try_clone_to_owned()?;
        Ok(Self {
            control,
            host_uid,
            build,
        })
    }
}

/// Why box-egress ended.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("could not enter the sandbox of box-egress: {0}")]
    Sandbox(#[from] SandboxError),
    #[error("could not start the threads of box-egress: {0}")]
    Threads(#[source] io::Error),
    #[error("the control socket of box-egress broke: {0}")]
    Control(#[source] io::Error),
}

/// Makes the control socket at `path`, in place of one that an earlier box-egress left. Only the
/// calling user may connect to it.
///
/// # Errors
/// When the path is too long for a socket (107 bytes) or its folder cannot be written to.
pub fn listen(path: &Path) -> io::Result<OwnedFd> {
    match unlink(path) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    let socket = socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    rustix::fs::chmod(path, Mode::RUSR | Mode::WUSR)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// Runs box-egress until a host ends it. Call it while the process has one thread.
///
/// # Errors
/// [`RunError`] says which part failed. Nothing was served before the sandbox stood.
pub fn run(options: Options) -> Result<(), RunError> {
    // Fails only for a process that leads its group already, such as one of a service manager.
    let _ = rustix::process::setsid();
    // Reads files, which the sandbox takes away.
    let threads = std::thread::available_parallelism()
        .map_or(2, usize::from)
        .min(THREADS_MAX);
    let files = sandbox::enter()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_io()
        .enable_time()
        .build()
        .map_err(RunError::Threads)?;
    runtime.block_on(async {
        let listener = ControlListener::new(options.control, options.host_uid);
        let keeper = Keeper::new(options.build, files);
        keeper
            .serve(listener.map_err(RunError::Control)?)
            .await
            .map_err(RunError::Control)
    })
}
