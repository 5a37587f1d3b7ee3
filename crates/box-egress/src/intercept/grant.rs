//! What a placeholder is worth at one host.

use crate::secret::Secret;
use box_api::egress::{CredentialSpec, HostName};
use std::sync::Arc;

/// A credential with its secret. Has no `Debug` on purpose.
pub(crate) struct Credential {
    pub(crate) spec: CredentialSpec,
    /// Absent once it was removed; its hosts stay closed then.
    pub(crate) secret: Option<Secret>,
}

impl Credential {
    /// Whether the secret is there and may be sent to `host`.
    pub(crate) fn serves(&self, host: &HostName) -> bool {
        self.secret.is_some() && self.spec.hosts.contains(host)
    }
}

/// A placeholder of the box for the host at hand.
pub(crate) struct Grant {
    pub(crate) placeholder: String,
    /// Absent when it is not there, or not for this host.
    pub(crate) credential: Option<Arc<Credential>>,
}

impl Grant {
    /// The bytes that go out instead of the placeholder.
    pub(crate) fn secret(&self) -> Option<&[u8]> {
        self.credential.as_ref()?.secret.as_ref().map(Secret::bytes)
    }
}
