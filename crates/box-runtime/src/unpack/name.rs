//! The name of an entry, parsed: relative, clean, without a way up.

use super::error::Refusal;

/// Longest name, bytes: `PATH_MAX` without its zero byte (limits.h).
pub(crate) const NAME_BYTES_MAX: usize = 4095;

/// Parts joined by single `/`; empty for the root of the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EntryName(Vec<u8>);

impl EntryName {
    /// Checks a name and drops its first `strip` parts. `None` when it has no more than these.
    pub(crate) fn parse(raw: &[u8], strip: usize) -> Result<Option<Self>, Refusal> {
        if raw.is_empty() {
            return Err(Refusal::Nameless);
        }
        if raw.len() > NAME_BYTES_MAX {
            return Err(Refusal::Long {
                max: NAME_BYTES_MAX,
            });
        }
        if raw.starts_with(b"/") {
            return Err(Refusal::Absolute);
        }
        if raw.contains(&0) {
            return Err(Refusal::ZeroByte);
        }
        let parts: Vec<&[u8]> = raw
            .split(|byte| *byte == b'/')
            .filter(|part| !part.is_empty() && *part != b".")
            .collect();
        if parts.contains(&&b".."[..]) {
            return Err(Refusal::Parent);
        }
        if strip > 0 && parts.len() <= strip {
            return Ok(None);
        }
        Ok(Some(Self(parts[strip..].join(&b'/'))))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a link of this name with this target stays below the root whatever other such links
    /// there are: the way up comes first, and is no longer than the folders it lies in, which are
    /// folders and no links.
    pub(super) fn stays_inside(&self, target: &[u8]) -> bool {
        if target.starts_with(b"/") {
            return false;
        }
        let folders = self.0.split(|byte| *byte == b'/').count() - 1;
        let mut parts = target
            .split(|byte| *byte == b'/')
            .filter(|part| !part.is_empty() && *part != b".")
            .peekable();
        let mut up = 0;
        while parts.next_if(|part| *part == b"..").is_some() {
            up += 1;
        }
        up <= folders && parts.all(|part| part != b"..")
    }

    /// The folder it lies in (empty: the root) and its own name.
    pub(crate) fn split(&self) -> (&[u8], &[u8]) {
        match self.0.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (&self.0[..slash], &self.0[slash + 1..]),
            None => (&[], &self.0),
        }
    }
}
