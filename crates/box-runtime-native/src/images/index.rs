//! The small files that say what an image is and what a reference stands for.

use rustix::fs::{Mode, OFlags, fsync, open};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

/// Largest such file, bytes; the package list is the long part.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// `images/<digest>/image.json`. When it was made is the file's own time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ImageFile {
    pub(super) layout: u32,
    /// The reference it was first made for.
    pub(super) image: String,
    pub(super) entries: u64,
    /// Sum of the file sizes.
    pub(super) bytes: u64,
    /// `name version architecture` of each Debian package, sorted; empty for a root tar.
    pub(super) packages: Vec<String>,
    /// The image's own variables.
    #[serde(default)]
    pub(super) env: Vec<(String, String)>,
    /// Digests of the layers it was pulled as.
    #[serde(default)]
    pub(super) blobs: Vec<String>,
}

/// `images/refs/<name>.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RefFile {
    pub(super) image: String,
    pub(super) digest: String,
    /// What it was made from; another stamp means it has to be made anew.
    pub(super) stamp: String,
}

/// SHA-256 over texts, each with its length before it, so that no two lists look the same.
pub(super) fn hex_sha256(texts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    }
    hex(&hash.finalize())
}

pub(super) fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or_default();
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

/// `None` when the file is not there.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut text = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut text)?;
    Ok(Some(serde_json::from_slice(&text)?))
}

/// Writes a file so that a crash leaves the old one or the new one. Its writers take turns.
pub(super) fn write(path: &Path, content: &impl Serialize) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = File::create(&new)?;
    file.write_all(&serde_json::to_vec_pretty(content)?)?;
    file.sync_all()?;
    std::fs::rename(&new, path)?;
    sync_folder_of(path)
}

pub(super) fn remove(path: &Path) -> io::Result<()> {
    std::fs::remove_file(path)?;
    sync_folder_of(path)
}

fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    fsync(open(
        folder,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?)?;
    Ok(())
}
