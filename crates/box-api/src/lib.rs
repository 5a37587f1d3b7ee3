//! What crosses a wire in Boxes: ids, requests, events, problems. No I/O and no runtime.
//!
//! Everything here is shape only. Whoever reads from a socket parses into these types at the door,
//! so that past it no raw name travels any further.

pub mod budget;
pub mod control;
pub mod decision;
pub mod egress;
pub mod guest;
pub mod id;
pub mod network;
pub mod page;
pub mod problem;
pub mod restore_point;
pub mod search;
pub mod snapshot;
pub mod thread;

pub use id::{BoxId, BoxName, BoxTitle, DecisionId, Owner, ThreadId};
pub use problem::{Problem, ProblemKind};
pub use snapshot::Label;

/// Version of the control protocol. Raised when an older peer could misread a newer one.
pub const PROTOCOL: u32 = 1;
