//! The control door over a real socket, with an engine that is not there.
#![expect(clippy::unwrap_used, reason = "what cannot go on has failed")]

mod boxes;
mod exec;
#[expect(dead_code, reason = "the tests of box-core use the rest")]
#[path = "../../../box-core/tests/host/fake_runtime.rs"]
mod fake_runtime;
mod greeting;
mod host;
mod process;
