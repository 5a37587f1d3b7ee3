//! The control socket's words for archives: out of a host, into a host.

use crate::BoxName;
use serde::{Deserialize, Serialize};

/// A box written as an archive. `Reply::Streams` brings the end of a pipe to read it from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Export {
    pub name: BoxName,
    pub snapshots: Along,
    pub image: Along,
}

/// Whether something travels with the box.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Along {
    Comes,
    Stays,
}

/// A box made of an archive. `Reply::Streams` brings the end of a pipe to write it into.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Import {
    /// Absent: as it is called in the archive.
    pub name: Option<BoxName>,
    /// The image it is to stand on, instead of the one it stood on.
    pub image: Option<String>,
    pub start: bool,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exported {
    pub name: BoxName,
    pub snapshots: u32,
    /// Whether the image is in it.
    pub image: bool,
    /// What could not travel, one line each; not all of them when there are many.
    pub left_out: Vec<String>,
    pub left_out_count: u64,
}
