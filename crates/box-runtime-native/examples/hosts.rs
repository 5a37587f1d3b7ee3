//! The claims about limits and freezing as a program for other machines: `cargo xtask test hosts` runs
//! it in one that has cgroup v2 alone. `hosts pack <file>` makes the image the claims need, where the
//! programs in it are.

#![expect(unsafe_code, reason = "a network namespace of the test's own")]
#![expect(clippy::unwrap_used, reason = "a test; what fails here fails the test")]
#![expect(clippy::print_stdout, reason = "a test program reports on stdout")]

#[path = "../tests/engine/alike.rs"]
mod alike;
#[path = "../tests/engine/cgroup.rs"]
mod cgroup;
#[path = "../tests/engine/freeze.rs"]
mod freeze;
#[path = "../tests/engine/harness.rs"]
#[expect(dead_code, reason = "the engine's own tests use all of it")]
mod harness;
#[path = "../tests/engine/image.rs"]
mod image;
#[path = "../tests/engine/limits.rs"]
mod limits;
#[path = "../tests/engine/unified.rs"]
mod unified;
#[path = "../tests/engine/user.rs"]
mod user;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, verb, file] = arguments.as_slice()
        && verb == "pack"
    {
        image::pack(Path::new(file));
        return ExitCode::SUCCESS;
    }
    let claims = [
        unified::CLAIMS,
        limits::CLAIMS,
        freeze::CLAIMS,
        alike::CLAIMS,
        unified::systemd::CLAIMS,
    ];
    harness::run(&claims.concat(), &[])
}
