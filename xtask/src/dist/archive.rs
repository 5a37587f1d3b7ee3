//! Packs files so that equal content gives equal bytes: one order, one owner, one time.

use anyhow::Result;
use flate2::{Compression, GzBuilder};
use std::collections::BTreeSet;
use std::io::Write as _;
use tar::{Builder, EntryType, Header};

/// A file of the archive.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    path: String,
    mode: u32,
    bytes: Vec<u8>,
}

impl Entry {
    pub(super) fn program(path: String, bytes: Vec<u8>) -> Self {
        let mode = 0o755;
        Self { path, mode, bytes }
    }

    pub(super) fn paper(path: String, bytes: Vec<u8>) -> Self {
        let mode = 0o644;
        Self { path, mode, bytes }
    }
}

/// A gzipped tar. Folders come before what is in them.
pub(super) fn pack(mut entries: Vec<Entry>, time_s: u64) -> Result<Vec<u8>> {
    entries.sort();
    let mut tar = Builder::new(Vec::new());
    for folder in folders(&entries) {
        let mut header = header(EntryType::Directory, 0o755, time_s);
        tar.append_data(&mut header, format!("{folder}/"), std::io::empty())?;
    }
    for entry in &entries {
        let mut header = header(EntryType::Regular, entry.mode, time_s);
        header.set_size(entry.bytes.len() as u64);
        tar.append_data(&mut header, &entry.path, entry.bytes.as_slice())?;
    }
    let plain = tar.into_inner()?;
    // Without a file's name, and with no system's mark (RFC 1952, OS 255).
    let mut gz = GzBuilder::new()
        .mtime(0)
        .operating_system(255)
        .write(Vec::new(), Compression::best());
    gz.write_all(&plain)?;
    Ok(gz.finish()?)
}

fn header(kind: EntryType, mode: u32, time_s: u64) -> Header {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_mtime(time_s);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(0);
    header
}

fn folders(entries: &[Entry]) -> BTreeSet<&str> {
    let above = |entry: &'_ Entry| -> Vec<usize> {
        entry.path.match_indices('/').map(|(at, _)| at).collect()
    };
    entries
        .iter()
        .flat_map(|entry| {
            let ends = above(entry);
            ends.into_iter().filter_map(|end| entry.path.get(..end))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    fn entries() -> Vec<Entry> {
        vec![
            Entry::paper("b/man/b.1".to_owned(), b"manual".to_vec()),
            Entry::program("b/box".to_owned(), vec![7; 5000]),
            Entry::paper("b/README.md".to_owned(), b"read me".to_vec()),
        ]
    }

    #[test]
    fn equal_content_gives_equal_bytes_in_whatever_order_it_comes() {
        let one = pack(entries(), 1_790_000_000).unwrap();
        let mut turned = entries();
        turned.reverse();
        assert_eq!(pack(turned, 1_790_000_000).unwrap(), one);
        assert_ne!(pack(entries(), 1_790_000_001).unwrap(), one);
        assert_ne!(pack(entries()[1..].to_vec(), 1_790_000_000).unwrap(), one);
    }

    #[test]
    fn an_archive_holds_each_file_as_it_is_and_nobodys_name() {
        let packed = pack(entries(), 1_790_000_000).unwrap();
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(packed.as_slice()));
        let mut seen = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let header = entry.header().clone();
            assert_eq!(header.mtime().unwrap(), 1_790_000_000);
            assert_eq!((header.uid().unwrap(), header.gid().unwrap()), (0, 0));
            assert_eq!(header.username().unwrap().unwrap_or_default(), "");
            let path = entry.path().unwrap().display().to_string();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            seen.push((path, header.mode().unwrap(), bytes.len()));
        }
        let expected = [
            ("b/", 0o755, 0),
            ("b/man/", 0o755, 0),
            ("b/README.md", 0o644, 7),
            ("b/box", 0o755, 5000),
            ("b/man/b.1", 0o644, 6),
        ];
        assert_eq!(
            seen,
            expected.map(|(path, mode, bytes)| (path.to_owned(), mode, bytes))
        );
    }
}
