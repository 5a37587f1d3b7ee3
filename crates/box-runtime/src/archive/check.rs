//! What is checked of an archive as a whole: manifest, checksums, end mark, completeness.

use super::attributes::Attributes;
use super::error::{ArchiveError, Offence};
use super::layout::{EndMark, FORMAT, Part, Place, State};
use super::read::{Plain, fill, placed, spooled};
use super::sums::{Compare, Compared, Spool};
use crate::Manifest;
use crate::unpack::{Entry, Kind, shown};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::io::Read;

/// Most snapshots of one box.
const SNAPSHOTS_MAX: usize = 10_000;
const END_BYTES_MAX: u64 = 4096;
/// What may follow the end mark of the tar.
const TRAILING_BYTES_MAX: u64 = 64 << 10;

/// The part of a manifest that every format has.
#[derive(Deserialize)]
struct Versioned {
    format: u32,
}

pub(super) fn manifest(text: &[u8]) -> Result<Manifest, ArchiveError> {
    let unreadable = |error: serde_json::Error| {
        // Of the error only the sentence, not where in the file.
        let text = error.to_string();
        let sentence = text.split(" at line ").next().unwrap_or_default();
        ArchiveError::Manifest(format!("is unreadable: {}", shown(sentence.as_bytes())))
    };
    let Versioned { format } = serde_json::from_slice(text).map_err(unreadable)?;
    if format > FORMAT {
        return Err(ArchiveError::Newer { found: format });
    }
    if format == 0 {
        return Err(ArchiveError::Manifest(
            "has format 0, which never was".to_owned(),
        ));
    }
    serde_json::from_slice(text).map_err(unreadable)
}

/// The states there should be: now, and every snapshot once.
pub(super) fn states(manifest: &Manifest) -> Result<BTreeSet<State>, ArchiveError> {
    if manifest.snapshots.len() > SNAPSHOTS_MAX {
        return Err(ArchiveError::Manifest(format!(
            "names more than {SNAPSHOTS_MAX} snapshots"
        )));
    }
    let mut states = BTreeSet::from([State::Now]);
    for snapshot in &manifest.snapshots {
        if !states.insert(State::Snapshot(snapshot.label.clone())) {
            return Err(ArchiveError::Manifest(format!(
                "names the snapshot `{}` twice",
                snapshot.label
            )));
        }
    }
    Ok(states)
}

/// All content of a member, which is one of ours and short.
pub(super) fn whole<R: Read>(
    entries: &mut Plain<R>,
    entry: &Entry,
    max: u64,
) -> Result<Vec<u8>, ArchiveError> {
    if entry.size > max {
        return Err(ArchiveError::refused(&entry.name, Offence::Long { max }));
    }
    let mut content = vec![0; usize::try_from(entry.size).unwrap_or_default()];
    fill(entries, &mut content)?;
    Ok(content)
}

/// Compares the checksums that came with those of what came.
pub(super) fn sums<R: Read>(
    entries: &mut Plain<R>,
    entry: &Entry,
    (ours, buffer): (Spool, &mut [u8]),
) -> Result<(), ArchiveError> {
    if entry.kind != Kind::File {
        return Err(ArchiveError::refused(&entry.name, Offence::NoFile));
    }
    let (bytes, lines) = ours.read().map_err(spooled)?;
    let mut compare = Compare::new(lines);
    loop {
        let count = fill(entries, buffer)?;
        if count == 0 {
            break;
        }
        if let Compared::Other(name) = compare.next(&buffer[..count]).map_err(spooled)? {
            return Err(ArchiveError::Checksum {
                entry: shown(&name),
            });
        }
    }
    if entry.size != bytes || !compare.is_over().map_err(spooled)? {
        return Err(ArchiveError::Checksum {
            entry: shown(&entry.name),
        });
    }
    Ok(())
}

/// The end mark, the sum of all before it, and nothing after it.
pub(super) fn end<R: Read>(entries: &mut Plain<R>, members: u64) -> Result<(), ArchiveError> {
    entries.skip()?;
    let found = EndMark {
        members,
        bytes: entries.source().bytes(),
        sha256: entries.source().sum(),
    };
    let Some(entry) = entries.next()? else {
        return Err(ArchiveError::Cut("it ends without its end mark"));
    };
    if placed(&entry)? != Place::End || entry.kind != Kind::File {
        return Err(ArchiveError::refused(&entry.name, Offence::AfterSums));
    }
    let text = whole(entries, &entry, END_BYTES_MAX)?;
    let told: EndMark = serde_json::from_slice(&text)
        .map_err(|_| ArchiveError::Damaged("its end mark is unreadable".to_owned()))?;
    if told != found {
        return Err(ArchiveError::Damaged(
            "the checksum of the whole is wrong".to_owned(),
        ));
    }
    if let Some(entry) = entries.next()? {
        return Err(ArchiveError::refused(&entry.name, Offence::AfterSums));
    }
    Ok(entries.drain(TRAILING_BYTES_MAX)?)
}

/// Every state has its workspace and its home; the image is there if it should be.
pub(super) fn complete(
    manifest: &Manifest,
    states: &BTreeSet<State>,
    trees: &BTreeSet<(State, Part)>,
) -> Result<(), ArchiveError> {
    for state in states {
        for part in [Part::Workspace, Part::Home] {
            if !trees.contains(&(state.clone(), part)) {
                return Err(ArchiveError::Lacks(format!("`{}`", state.tree(part))));
            }
        }
    }
    if manifest.with_image && !trees.contains(&(State::Now, Part::Image)) {
        return Err(ArchiveError::Lacks("its image".to_owned()));
    }
    Ok(())
}

/// Adds a member of an image to the sum over all of it: everything that is seen in a box.
pub(super) fn describe(
    sum: &mut Sha256,
    entry: &Entry,
    attributes: &Attributes,
    content: Option<&[u8]>,
) {
    let mut field = |bytes: &[u8]| {
        sum.update((bytes.len() as u64).to_le_bytes());
        sum.update(bytes);
    };
    field(&entry.name);
    field(format!("{:?}", entry.kind).as_bytes());
    field(&entry.link);
    let Attributes {
        mode,
        uid,
        gid,
        mtime: (seconds, nanoseconds),
        xattrs,
        marks: _,
    } = attributes;
    field(format!("{mode:o} {uid} {gid} {seconds} {nanoseconds}").as_bytes());
    for (name, value) in xattrs {
        field(name);
        field(value);
    }
    field(content.unwrap_or_default());
}
