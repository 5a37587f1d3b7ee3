//! A box as one portable file. `docs/archive-format.md` describes the layout for readers of it.
//!
//! A zstd frame around a POSIX tar: the manifest, the trees, a checksum of every file, an end mark
//! with the checksum of all before it. Both ways stream: memory does not grow with the box. What is
//! written is in one fixed order, folders before what is in them, so that whoever reads needs no
//! list of what came, and refuses everything a writer of this module would not have written.

mod attributes;
mod budget;
mod check;
mod content;
mod error;
mod garden;
mod header;
mod layout;
mod pipe;
mod plant;
mod read;
mod sums;
mod walk;
mod write;

pub use attributes::{OnDisk, OverlayNames};
pub use budget::Room;
pub use error::{ArchiveError, Offence};
pub use layout::{FORMAT, Part, State};
pub use pipe::Pipe;
pub use read::{Arriving, Grounds, ImageInArchive, Received, Rules};
pub use walk::Tree;
pub use write::{ArchiveWriter, LeftOut};

#[cfg(test)]
mod tests;
