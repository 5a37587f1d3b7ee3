//! box-egress as a process, on an internet of its own: what boxes can do through it, and what
//! they cannot. Each refusal stands beside the same thing allowed.
#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test that cannot go on fails"
)]

#[path = "egress/asked.rs"]
mod asked;
#[path = "egress/carried.rs"]
mod carried;
#[path = "egress/catalogue.rs"]
mod catalogue;
#[path = "egress/client.rs"]
mod client;
#[path = "egress/control.rs"]
mod control;
#[path = "egress/corporate.rs"]
mod corporate;
#[path = "egress/fail_closed.rs"]
mod fail_closed;
#[path = "egress/github.rs"]
mod github;
#[path = "egress/host.rs"]
mod host;
#[path = "egress/inside.rs"]
mod inside;
#[path = "egress/intercepted.rs"]
mod intercepted;
#[path = "egress/logins.rs"]
mod logins;
#[path = "egress/names.rs"]
mod names;
#[path = "egress/process.rs"]
mod process;
#[path = "egress/protocols.rs"]
mod protocols;
#[path = "egress/refused.rs"]
mod refused;
#[path = "egress/rules.rs"]
mod rules;
#[path = "egress/traffic.rs"]
mod traffic;
#[path = "egress/tunnelled.rs"]
mod tunnelled;
#[path = "egress/world.rs"]
mod world;
