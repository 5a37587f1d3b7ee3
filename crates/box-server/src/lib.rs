//! The doors of the host: the control socket, and what the host process does around it.
//!
//! A door authenticates the caller and parses; it is the last place with raw strings. What a request
//! then means is `box-core`'s. One file a request, below `control`; one file, `problem`, turns
//! every failure into what a person reads.

pub mod acp;
mod control;
mod http;
mod listen;
mod log;
mod problem;
mod serve;

pub use box_core::egress::Program;
pub use box_core::host::Runtimes;
pub use box_core::sign_ins::Place;
pub use box_core::{paths, settings};
pub use serve::{ServeOptions, run};
