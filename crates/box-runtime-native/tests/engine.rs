//! The native engine on this machine: the claims every engine makes, and its own. As root, and as
//! ordinary users what concerns them.
//!
//! A test program of its own kind (`harness = false`): the spawner is forked before a program has
//! threads, and the usual harness runs every test in one. It speaks the part of that harness's
//! command line that cargo and nextest use.

#![expect(unsafe_code, reason = "a network namespace of the test's own")]
#![expect(clippy::unwrap_used, reason = "a test; what fails here fails the test")]
#![expect(clippy::print_stdout, reason = "a test program reports on stdout")]

#[path = "engine/alike.rs"]
mod alike;
#[path = "engine/cgroup.rs"]
mod cgroup;
#[path = "engine/crash.rs"]
mod crash;
#[path = "engine/disk.rs"]
mod disk;
#[path = "engine/disk_limit.rs"]
mod disk_limit;
#[path = "engine/freeze.rs"]
mod freeze;
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
#[path = "engine/machines.rs"]
mod machines;
#[path = "engine/net.rs"]
mod net;
#[path = "engine/oci.rs"]
mod oci;
#[path = "engine/pool.rs"]
mod pool;
#[path = "engine/rootless.rs"]
mod rootless;
#[path = "engine/snapshots.rs"]
mod snapshots;
#[path = "engine/transfer.rs"]
mod transfer;
#[path = "engine/tree.rs"]
mod tree;
#[path = "engine/undo.rs"]
mod undo;
#[path = "engine/user.rs"]
mod user;
#[path = "engine/without_cgroups.rs"]
mod without_cgroups;

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = crash::child() {
        return code;
    }
    let claims = [
        alike::CLAIMS,
        disk::CLAIMS,
        disk_limit::CLAIMS,
        disk_limit::SMALL,
        freeze::CLAIMS,
        isolation::CLAIMS,
        life::CLAIMS,
        limits::CLAIMS,
        net::CLAIMS,
        oci::CLAIMS,
        pool::CLAIMS,
        snapshots::CLAIMS,
        transfer::CLAIMS,
        transfer::OF_USERS,
        undo::CLAIMS,
        without_cgroups::CLAIMS,
    ];
    let of_users = [
        alike::CLAIMS,
        net::CLAIMS,
        rootless::CLAIMS,
        transfer::OF_USERS,
        undo::CLAIMS,
    ];
    harness::run(&claims.concat(), &of_users.concat())
}
