//! Images of registries, and archives of such images: names, manifests, layers.
//!
//! Our own client on the workspace's HTTP client (docs/design/0004): it goes on with interrupted
//! layers and blocks, as the rest of the image store does.

mod blobs;
mod challenge;
pub(super) mod credentials;
mod digest;
mod layers;
pub(super) mod manifest;
mod name;
mod pull;
mod registry;

pub(super) use blobs::{Blobs, Clean};
pub(super) use credentials::Logins;
pub(super) use digest::Digest;
pub(super) use layers::Layers;
pub(super) use name::OciName;
pub(super) use pull::{Found, Patience, find};

/// What an image is made from: its configuration names every layer, so the same image is the same
/// wherever it came from and however it was compressed.
pub(super) fn source(config: &Digest) -> String {
    format!("oci image {config}")
}
