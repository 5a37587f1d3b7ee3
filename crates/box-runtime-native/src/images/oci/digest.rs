//! What content is called by: the SHA-256 over it, written `sha256:<64 hex digits>`.

use crate::images::index::hex;
use crate::images::reference::is_digest;
use sha2::{Digest as _, Sha256};
use std::fmt;

/// The digest of a manifest, a configuration or a layer. OCI knows others (image specification,
/// *Digests*); registries use this one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::images) struct Digest(String);

impl Digest {
    pub(in crate::images) fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("sha256:")?;
        is_digest(digits).then(|| Self(digits.to_owned()))
    }

    pub(in crate::images) fn of(content: &[u8]) -> Self {
        Self(hex(&Sha256::digest(content)))
    }

    pub(in crate::images) fn of_hash(hash: Sha256) -> Self {
        Self(hex(&hash.finalize()))
    }

    /// The digits alone, fit for a file name.
    pub(in crate::images) fn digits(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "sha256:{}", self.0)
    }
}
