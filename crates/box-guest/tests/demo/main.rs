//! The demo agent, driven over ACP as a host drives it.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod cancel;
mod client;
mod protocol;
mod turn;
