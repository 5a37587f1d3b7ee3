//! Images on the wire.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageInfo {
    /// What a person types.
    pub image: String,
    pub digest: String,
    pub bytes: u64,
    pub created_at_ms: i64,
}

/// What a client wants of images besides listing, preparing and removing them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum ImageAsk {
    /// Makes or looks it up again, though it is ready: a tag may have moved on.
    Refresh { image: String },
    /// Makes an image of an archive on this machine, under the name `built:<name>`.
    Adopt {
        /// Absolute path.
        archive: String,
        name: String,
    },
    /// What no box and no snapshot uses; removed only when that is asked.
    Prune { remove: bool },
}

/// What no box and no snapshot uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnusedImages {
    pub images: Vec<ImageInfo>,
    /// Layers kept from pulls, and those that were interrupted.
    pub downloads_bytes: u64,
    /// Whether they are gone.
    pub removed: bool,
}
