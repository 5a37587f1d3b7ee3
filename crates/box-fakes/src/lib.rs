//! Test doubles: an internet in a network namespace, a model server and vendors on it, hostile agents.
//!
//! A dev-dependency only. Nothing in the product knows about this crate: what is tested is the
//! program a person runs, with two ordinary settings (`egress.resolvers`, `egress.extra_roots`)
//! that point at the [`Rig`].

pub mod account;
pub mod hostile;
pub mod model;
pub mod push;
pub mod rig;
pub mod vendors;

pub use account::{Account, Ids};
pub use rig::Rig;
