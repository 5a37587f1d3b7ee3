//! A secret in memory: wiped when dropped, shown by nothing.

use zeroize::Zeroizing;

/// Bytes that must not be seen. Has no `Debug`, `Display` or `Serialize` on purpose.
pub(crate) struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self(Zeroizing::new(bytes.to_vec()))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}
