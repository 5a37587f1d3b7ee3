//! The one home of processes this command starts. Programs and arguments, never a shell string.

use std::ffi::OsStr;
use std::process::Command;

/// A command that runs `program` as it is.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the one home of processes in this crate"
)]
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}
