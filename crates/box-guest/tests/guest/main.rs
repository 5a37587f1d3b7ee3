//! box-guest as pid 1 of a pid namespace, spoken to through the client every engine uses.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod dial;
mod durable;
mod exec;
mod hidden;
mod hostile;
mod house;
mod stop;
