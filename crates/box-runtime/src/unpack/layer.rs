//! A layer over what layers before it left: what it hides, and what is its own.
//!
//! `.wh.<name>` hides `<name>`, `.wh..wh..opq` all that a folder held (OCI image specification,
//! *Image Layer Filesystem Changeset*). Both mean the layers below only, wherever they stand in the
//! archive; so what the layer itself brought is remembered.

use super::error::Refusal;
use super::name::EntryName;
use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};

const PREFIX: &[u8] = b".wh.";
const OPAQUE: &[u8] = b".wh..wh..opq";
/// What AUFS kept for itself: hard links, its own folders.
const OTHER_PREFIX: &[u8] = b".wh..wh.";

/// What the name of an entry of a layer asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asks {
    /// It is an entry as any other.
    Entry,
    /// The folder's content of layers below is hidden. Empty: the root.
    HideContent(Vec<u8>),
    /// The thing of that name is hidden, if a layer below has it.
    Hide(EntryName),
    /// It means nothing outside the file system that made it.
    Nothing,
}

pub(super) fn asks(name: &EntryName) -> Result<Asks, Refusal> {
    let (folder, own) = name.split();
    let Some(hidden) = own.strip_prefix(PREFIX) else {
        return Ok(Asks::Entry);
    };
    if own == OPAQUE {
        return Ok(Asks::HideContent(folder.to_vec()));
    } else if own.starts_with(OTHER_PREFIX) {
        return Ok(Asks::Nothing);
    } else if hidden.is_empty() || hidden == b"." || hidden == b".." {
        return Err(Refusal::HidesNothing);
    }
    let whole = [folder, hidden].join(&b'/');
    let relative = whole.strip_prefix(b"/").unwrap_or(&whole);
    EntryName::parse(relative, 0)?
        .map(Asks::Hide)
        .ok_or(Refusal::HidesNothing)
}

/// The names a layer brought, as sums of 64 bits under a key of our own: eight bytes a name,
/// whatever its length. Two names meet once in 10^7 layers of a million entries; then a thing that
/// should be hidden stays, which is the image's own loss.
#[derive(Debug, Default)]
pub(super) struct Brought {
    key: RandomState,
    names: HashSet<u64>,
    /// Folders all of whose content of layers below is gone.
    emptied: HashSet<u64>,
}

impl Brought {
    /// Remembers a name and the folders it lies in.
    pub(super) fn add(&mut self, name: &[u8]) {
        let mut rest = name;
        while self.names.insert(self.key.hash_one(rest)) {
            match rest.iter().rposition(|byte| *byte == b'/') {
                Some(slash) => rest = &rest[..slash],
                None => break,
            }
        }
    }

    pub(super) fn has(&self, name: &[u8]) -> bool {
        self.names.contains(&self.key.hash_one(name))
    }

    /// Whether a folder is still to be emptied; asked once, it is not any more. So whatever a layer
    /// hides how often, each folder is gone through once.
    pub(super) fn empties(&mut self, folder: &[u8]) -> bool {
        self.emptied.insert(self.key.hash_one(folder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(name: &str) -> Result<Asks, Refusal> {
        asks(&EntryName::parse(name.as_bytes(), 0)?.unwrap())
    }

    #[test]
    fn whiteouts_are_told_by_their_names() {
        let hidden =
            |name: &str| Asks::Hide(EntryName::parse(name.as_bytes(), 0).unwrap().unwrap());
        assert_eq!(asked("a/b").unwrap(), Asks::Entry);
        assert_eq!(asked("a/wh.b").unwrap(), Asks::Entry);
        assert_eq!(asked("a/.wh.b").unwrap(), hidden("a/b"));
        assert_eq!(asked(".wh.b").unwrap(), hidden("b"));
        assert_eq!(asked("a/.wh..hidden").unwrap(), hidden("a/.hidden"));
        assert_eq!(
            asked("a/b/.wh..wh..opq").unwrap(),
            Asks::HideContent(b"a/b".to_vec())
        );
        assert_eq!(
            asked(".wh..wh..opq").unwrap(),
            Asks::HideContent(Vec::new())
        );
        assert_eq!(asked(".wh..wh.plnk").unwrap(), Asks::Nothing);
        for name in ["a/.wh.", "a/.wh..", ".wh...", ".wh."] {
            assert_eq!(asked(name), Err(Refusal::HidesNothing), "{name}");
        }
    }

    #[test]
    fn a_name_brings_the_folders_above_it_and_nothing_else() {
        let mut brought = Brought::default();
        brought.add(b"a/b/c");
        for name in ["a", "a/b", "a/b/c"] {
            assert!(brought.has(name.as_bytes()), "{name}");
        }
        for name in ["", "b", "a/c", "a/b/c/d"] {
            assert!(!brought.has(name.as_bytes()), "{name}");
        }
        assert!(brought.empties(b"a"));
        assert!(!brought.empties(b"a"));
    }
}
