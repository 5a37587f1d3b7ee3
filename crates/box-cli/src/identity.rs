//! Which build this is: the version and the hash the linker stamped into the executable.
//!
//! Equal sources and tools give equal stamps, anything changed gives another one, and reading it
//! costs three small reads. `elf(5)`: program headers, `PT_NOTE`, `NT_GNU_BUILD_ID`.

use std::fs::File;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

/// This very executable, also after its file was replaced or removed.
pub(crate) const OWN_EXECUTABLE: &str = "/proc/self/exe";
/// The package's version.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

const HEADER_BYTES: usize = 64;
const PROGRAM_HEADER_BYTES: usize = 56;
const PROGRAM_HEADERS_MAX: usize = 64;
const NOTE_BYTES_MAX: usize = 4096;
const PT_NOTE: u64 = 4;
const NT_GNU_BUILD_ID: u64 = 3;
/// Bytes of the hash that are shown; 48 bits tell builds of one machine apart.
const STAMP_BYTES: usize = 6;

/// The build's id as greetings show it, such as `0.1.0+e786cf319994`.
pub(crate) fn build() -> String {
    let stamp = stamp(Path::new(OWN_EXECUTABLE)).unwrap_or_else(|| "unknown".to_owned());
    format!("{VERSION}+{stamp}")
}

fn stamp(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?;
    let linked = build_id(&file).map(|id| {
        let shown = id.iter().take(STAMP_BYTES);
        let number = shown.fold(0u64, |number, byte| (number << 8) | u64::from(*byte));
        format!("{number:0width$x}", width = 2 * STAMP_BYTES)
    });
    // Without a note: size and time of the file tell two builds apart as well.
    linked.or_else(|| {
        let about = file.metadata().ok()?;
        Some(format!(
            "{:x}.{:x}.{:x}",
            about.len(),
            about.mtime(),
            about.mtime_nsec()
        ))
    })
}

fn build_id(file: &File) -> Option<Vec<u8>> {
    let header = bytes_at(file, 0, HEADER_BYTES)?;
    if header.get(..5)? != b"\x7fELF\x02" {
        return None;
    }
    let table_at = number(&header, 32, 8)?;
    let entries = usize::try_from(number(&header, 56, 2)?)
        .ok()?
        .min(PROGRAM_HEADERS_MAX);
    let table = bytes_at(file, table_at, entries * PROGRAM_HEADER_BYTES)?;
    let notes = table
        .chunks_exact(PROGRAM_HEADER_BYTES)
        .filter(|entry| number(entry, 0, 4) == Some(PT_NOTE));
    notes
        .filter_map(|entry| {
            let length = usize::try_from(number(entry, 32, 8)?)
                .ok()?
                .min(NOTE_BYTES_MAX);
            bytes_at(file, number(entry, 8, 8)?, length)
        })
        .find_map(|notes| id_among(&notes))
}

/// The id in a run of notes: sizes of name and content, type, then both padded to four bytes.
fn id_among(mut notes: &[u8]) -> Option<Vec<u8>> {
    while notes.len() >= 12 {
        let name_bytes = usize::try_from(number(notes, 0, 4)?).ok()?;
        let content_bytes = usize::try_from(number(notes, 4, 4)?).ok()?;
        let kind = number(notes, 8, 4)?;
        let content_at = 12 + name_bytes.next_multiple_of(4);
        let content = notes.get(content_at..content_at.checked_add(content_bytes)?)?;
        if kind == NT_GNU_BUILD_ID && notes.get(12..12 + name_bytes)? == b"GNU\0" {
            return Some(content.to_vec());
        }
        notes = notes.get(content_at + content_bytes.next_multiple_of(4)..)?;
    }
    None
}

fn bytes_at(file: &File, offset: u64, length: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, offset).ok()?;
    Some(bytes)
}

/// A little-endian number of `size` (at most eight) bytes.
fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let field = bytes.get(at..at.checked_add(size)?)?;
    Some(
        field
            .iter()
            .rev()
            .fold(0, |number, byte| (number << 8) | u64::from(*byte)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_linker_stamps_this_executable() {
        let file = File::open(OWN_EXECUTABLE).unwrap();
        let id = build_id(&file).expect("a build id in the test's own executable");
        assert!(id.len() >= STAMP_BYTES, "{id:?}");
        assert_eq!(build(), build());
    }

    #[test]
    fn another_note_before_it_is_passed_over() {
        let mut notes = Vec::new();
        for (kind, content) in [(1u32, [9u8; 8]), (3, [7; 8])] {
            notes.extend(4u32.to_le_bytes());
            notes.extend(8u32.to_le_bytes());
            notes.extend(kind.to_le_bytes());
            notes.extend(b"GNU\0");
            notes.extend(content);
        }
        assert_eq!(id_among(&notes), Some(vec![7; 8]));
        assert_eq!(id_among(&notes[..20]), None);
        assert_eq!(id_among(&[0xff; 40]), None);
    }

    #[test]
    fn a_file_without_a_note_is_told_by_size_and_time() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"#!/bin/sh\n").unwrap();
        assert!(stamp(file.path()).unwrap().starts_with("a."));
    }
}
