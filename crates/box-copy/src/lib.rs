//! Copying between a box and its owner's folder: what both ends agree on.
//!
//! A crate of its own because both the command and a static program inside the box need it, and
//! that one carries nothing else.
//!
//! The stream is one byte that says what the source is ([`Kind`]), then a tar. A folder's entries
//! are relative to it, itself first as `./`; a file is one entry [`FILE_ENTRY`]. Where it goes is
//! decided by whoever has the destination ([`place`]).

mod pack;
mod rules;

pub use pack::{PackError, Packed, kind_of, pack};
pub use rules::{
    BYTES_MAX, ENTRIES_MAX, FILE_ENTRY, Kind, Place, PlaceError, Slash, Source, There,
    means_content, name_of, place,
};
