//! The host as a whole: real store, real files, an engine that is not there.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "what cannot go on has failed"
)]

mod budget;
mod create;
mod credentials;
mod egress;
mod expose;
mod fake_egress;
#[expect(dead_code, reason = "the tests of box-server use the rest")]
mod fake_runtime;
mod github;
mod images;
mod logins;
mod network;
mod opening;
mod pool;
mod push;
mod reconcile;
mod replace;
mod rig;
mod run;
mod sealed;
mod traffic;
mod undo;
mod watch;
