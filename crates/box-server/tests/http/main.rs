//! The page's door over real connections, with an engine that is not there.
#![expect(clippy::unwrap_used, reason = "what cannot go on has failed")]

mod browser;
mod entry;
#[expect(dead_code, reason = "the tests of box-core use the rest")]
#[path = "../../../box-core/tests/host/fake_runtime.rs"]
mod fake_runtime;
#[expect(dead_code, reason = "the tests of the control socket use the rest")]
#[path = "../control/host.rs"]
mod host;
mod journal;
mod program;
mod push;
mod rest;
mod socket;
