//! The host of Boxes: lifecycle, threads, decisions, egress client, store.
//!
//! One [`Host`] holds what everything needs and is passed first. Requests come in through the doors
//! of `box-server`, already parsed; engines are reached through `box_runtime::Runtime` alone.

pub mod acp;
pub mod agents;
pub mod attachments;
pub mod boxes;
pub mod budget;
pub mod caller;
pub mod clock;
pub mod credentials;
pub mod decisions;
pub mod egress;
pub mod events;
pub mod exec;
pub mod expose;
pub mod github;
pub mod host;
pub mod images;
mod inside;
pub mod journal;
pub mod lifecycle;
pub mod lock;
pub mod logs;
pub mod network;
pub mod open;
pub mod parking;
pub mod paths;
pub mod people;
pub mod policy;
pub mod pool;
pub mod processes;
pub mod push;
pub mod random;
pub mod reconcile;
pub mod recorded;
pub mod restore_points;
pub mod search;
pub mod settings;
pub mod shell_line;
pub mod sign_ins;
pub mod store;
pub mod suggest;
pub mod thread;
pub mod watch;
pub mod workspace_files;

pub use caller::Caller;
pub use host::Host;
