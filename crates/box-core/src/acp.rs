//! The Agent Client Protocol, version 1, as a client speaks it: the only place that knows its
//! words.
//!
//! Newline-delimited JSON-RPC 2.0 over the agent's standard streams. Bytes become lines
//! ([`line`]), lines become messages ([`message`]), messages become what a thread knows
//! ([`update`], [`ask`], [`setup`], [`outcome`], [`extension`]); [`send`] writes the lines that go
//! the other way. Nothing here does I/O. What is not understood is kept, never guessed at: an
//! update of an unknown kind becomes a row that holds it whole, an unknown request is refused with
//! -32601, an unknown stop reason is told as such.

pub mod ask;
pub mod content;
pub mod extension;
pub mod form;
pub mod line;
pub mod message;
pub mod method;
pub mod options;
pub mod outcome;
pub mod reset;
pub mod send;
pub mod setup;
pub mod update;

pub use ask::Ask;
pub use line::{LineReader, LineTooLong};
pub use message::{Incoming, RpcError, RpcId};

/// Longest line taken from an agent. Its own library refuses to write more than 32 MiB
/// (`@agentclientprotocol/sdk` 2.4.0, `stream-limits`), so a longer one is no message.
pub const LINE_IN_BYTES_MAX: usize = 32 << 20;
/// Longest line sent to an agent: below the 32 MiB at which its library gives up without a word.
pub const LINE_OUT_BYTES_MAX: usize = 24 << 20;
/// The protocol version spoken here.
pub const PROTOCOL_VERSION: u64 = 1;
