//! The native engine on this machine, as root: the claims every engine makes, and its own.
//!
//! A test program of its own kind (`harness = false`): the spawner is forked before a program has
//! threads, and the usual harness runs every test in one. It speaks the part of that harness's
//! command line that cargo and nextest use.

#![expect(unsafe_code, reason = "a network namespace of the test's own")]
#![expect(clippy::unwrap_used, reason = "a test; what fails here fails the test")]
#![expect(clippy::print_stdout, reason = "a test program reports on stdout")]

#[path = "engine/alike.rs"]
mod alike;
#[path = "engine/disk.rs"]
mod disk;
#[path = "engine/harness.rs"]
mod harness;
#[path = "engine/image.rs"]
mod image;
#[path = "engine/isolation.rs"]
mod isolation;
#[path = "engine/life.rs"]
mod life;
#[path = "engine/limits.rs"]
mod limits;
#[path = "engine/net.rs"]
mod net;
#[path = "engine/without_cgroups.rs"]
mod without_cgroups;

use std::process::ExitCode;

fn main() -> ExitCode {
    let claims = [
        alike::CLAIMS,
        disk::CLAIMS,
        isolation::CLAIMS,
        life::CLAIMS,
        limits::CLAIMS,
        net::CLAIMS,
        without_cgroups::CLAIMS,
    ];
    harness::run(&claims.concat())
}
