//! box-guest: pid 1 of a box. Starts commands, keeps durable processes and their output, reaps.
//!
//! # What the launcher gives it
//!
//! `box-guest [--user <uid>:<gid>] [--grace-ms <n>]`
//!
//! * **Descriptor 3**: a listening Unix stream socket, bound in a folder of the host, so that no
//!   path to it exists inside. The host's connections speak [`box_api::guest`]. Everything above 3
//!   is closed at the start; 0, 1 and 2 are kept (missing ones become `/dev/null`), and 2 gets a
//!   line if the guest cannot start.
//! * **Environment**: what every process of the box starts with; a request's variables are added
//!   and win. Without a `PATH` the usual folders are searched and none is set.
//! * **Privileges** already reduced: uid, capabilities, `no_new_privs`, seccomp. Commands inherit
//!   them. With `--user` the guest stays what it is and commands are switched to that uid and gid
//!   (no supplementary groups); it then needs `CAP_SETUID`, `CAP_SETGID` and `CAP_KILL` in its
//!   user namespace, and the switch drops them for the commands.
//! * **Mounts**: `/proc` for kills that reach beyond one process group, `/dev/ptmx` and devpts for
//!   terminals. It starts without both.
//! * **Seccomp** must leave, beside what any program needs: `signalfd4`, `ppoll`, `pipe2`,
//!   `accept4`, `sendmsg`, `setsid`, `close_range`, `wait4`, `prctl(PR_SET_DUMPABLE)`,
//!   `prctl(PR_SET_CHILD_SUBREAPER)`, `ioctl(TIOCGPTPEER, TIOCSPTLCK, TIOCSCTTY, TIOCSWINSZ,
//!   FIONREAD)`.
//!
//! # What it promises
//!
//! It is non-dumpable from its first instruction on, so nothing in the box can trace it, read its
//! memory or take a descriptor from it, whatever its uid (prctl(2), ptrace(2)). It has no signal
//! handler: everything is blocked and two signals are read from a descriptor. As pid 1 it heeds a
//! `SIGTERM` only from outside its pid namespace: then it sends `SIGTERM` to everything, goes on
//! until nothing is left or the grace (10 s unless told) is over, sends `SIGKILL`, exits with 0.
//!
//! Single-threaded, one `poll` loop, everything in it bounded. The files are named in the order a
//! request meets them: `connection` → `request` → `dial` or `launch` → `child`; then `command` for what lives
//! with its connection, `process`, `spool` and `attachment` for what outlives it.

#![cfg_attr(not(test), no_main)]
#![expect(
    unsafe_code,
    reason = "fork, exec and signals; each use says why it is sound"
)]

mod arguments;
mod attachment;
mod child;
mod command;
mod connection;
mod dial;
mod guest;
mod kill;
mod launch;
mod process;
mod request;
mod spool;
mod system;
mod terminal;

use arguments::Arguments;
use std::ffi::{c_char, c_int};
use std::io::Write as _;

/// `no_main`, so that what Rust does before `main` (signal handlers, ignoring `SIGPIPE`, which
/// would be inherited by every command) does not happen.
// SAFETY: no other symbol of this name exists in a program without Rust's own `main`.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn main(_count: c_int, _arguments: *const *const c_char) -> c_int {
    let run = || -> Result<(), String> {
        system::become_undumpable()?;
        let arguments = Arguments::parse(std::env::args_os().skip(1))?;
        let listener = system::take_over_descriptors()?;
        let signals = system::Signals::block_all()?;
        guest::Guest::new(&arguments, listener, signals).run()
    };
    match run() {
        Ok(()) => 0,
        Err(why) => {
            // Nobody is left to tell if this fails too.
            drop(writeln!(std::io::stderr(), "box-guest: {why}"));
            1
        }
    }
}
