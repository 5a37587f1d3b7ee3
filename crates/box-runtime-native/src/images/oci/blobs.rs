//! Layers as registries send them, kept so that nothing is sent twice. A cache: all of it may go.
//!
//! ```text
//! blobs/sha256/<digest>    whole and checked
//! blobs/partial/<digest>   as far as it came; locked by whoever downloads it
//! blobs/lock               shared by pulls, taken alone to clean up
//! ```
//! A partial download is kept across crashes to be gone on with, so it is not born in `tmp/`; it
//! gets its name only when its digest was checked and it is on disk.

use super::digest::Digest;
use super::manifest::Descriptor;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, fsync, open};
use rustix::io::{Errno, retry_on_intr};
use sha2::{Digest as _, Sha256};
use std::fs::{DirBuilder, DirEntry, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

const COPY_BYTES: usize = 128 << 10;

/// The cache of one data folder.
#[derive(Debug)]
pub(in crate::images) struct Blobs {
    folder: PathBuf,
}

/// A download under way. Dropped before [`Partial::finish`], it is gone on with next time.
#[derive(Debug)]
pub(super) struct Partial {
    file: File,
    path: PathBuf,
    target: PathBuf,
    wanted: Descriptor,
    hash: Sha256,
    bytes: u64,
}

/// What is wrong with a download that is over.
#[derive(Debug, thiserror::Error)]
pub(super) enum Wrong {
    #[error("it is not what its digest says")]
    Digest,
    #[error(transparent)]
    Disk(#[from] io::Error),
}

impl Blobs {
    pub(in crate::images) fn open(data_dir: &Path) -> io::Result<Self> {
        let blobs = Self {
            folder: data_dir.join("blobs"),
        };
        for folder in ["sha256", "partial"] {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(blobs.folder.join(folder))?;
        }
        Ok(blobs)
    }

    /// While it is held nothing is cleaned up.
    pub(super) fn in_use(&self) -> io::Result<OwnedFd> {
        let lock = self.lock()?;
        retry_on_intr(|| flock(&lock, FlockOperation::LockShared))?;
        Ok(lock)
    }

    fn lock(&self) -> io::Result<OwnedFd> {
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.folder.join("lock"))?;
        Ok(file.into())
    }

    /// A layer that is here.
    pub(super) fn get(&self, digest: &Digest) -> io::Result<File> {
        File::open(self.whole(digest))
    }

    /// Takes a layer that turned out to be wrong out of the cache.
    pub(super) fn forget(&self, digest: &Digest) {
        // What is not there need not go.
        drop(std::fs::remove_file(self.whole(digest)));
    }

    /// Begins a download or goes on with one; `None` when the layer is here. Waits while somebody
    /// else downloads it.
    pub(super) fn begin(&self, wanted: &Descriptor) -> io::Result<Option<Partial>> {
        let path = self.folder.join("partial").join(wanted.digest.digits());
        let target = self.whole(&wanted.digest);
        let file = held(&path)?;
        if std::fs::metadata(&target).is_ok_and(|there| there.len() == wanted.bytes) {
            std::fs::remove_file(&path)?;
            return Ok(None);
        }
        let mut partial = Partial {
            file,
            path,
            target,
            wanted: wanted.clone(),
            hash: Sha256::new(),
            bytes: 0,
        };
        partial.take_up()?;
        Ok(Some(partial))
    }

    /// Removes every layer but these, and what interrupted downloads left; says how many bytes.
    /// Nothing goes while a pull is under way.
    pub(in crate::images) fn clean(&self, keep: &[String], mode: Clean) -> io::Result<u64> {
        let lock = self.lock()?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => return Ok(0),
            locked => locked?,
        }
        let mut bytes = 0;
        for entry in std::fs::read_dir(self.folder.join("sha256"))? {
            let entry = entry?;
            let name = entry.file_name();
            if !keep.iter().any(|digest| name.to_str() == Some(digest)) {
                bytes += mode.take(&entry)?;
            }
        }
        for entry in std::fs::read_dir(self.folder.join("partial"))? {
            bytes += mode.take(&entry?)?;
        }
        Ok(bytes)
    }

    fn whole(&self, digest: &Digest) -> PathBuf {
        self.folder.join("sha256").join(digest.digits())
    }
}

/// Whether cleaning up is done or only counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::images) enum Clean {
    Remove,
    Count,
}

impl Clean {
    fn take(self, entry: &DirEntry) -> io::Result<u64> {
        let bytes = entry.metadata()?.len();
        if self == Self::Remove {
            std::fs::remove_file(entry.path())?;
        }
        Ok(bytes)
    }
}

/// The file of a partial download, nobody else's as long as it is open.
fn held(path: &Path) -> io::Result<File> {
    loop {
        let file = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(0o600)
            .open(path)?;
        retry_on_intr(|| flock(&file, FlockOperation::LockExclusive))?;
        let (place, ours) = (std::fs::metadata(path).ok(), file.metadata()?);
        // Else whoever had it finished or dropped it while we waited.
        if place.is_some_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())) {
            return Ok(file);
        }
    }
}

impl Partial {
    /// Hashes what an earlier try left.
    fn take_up(&mut self) -> io::Result<()> {
        if self.file.metadata()?.len() > self.wanted.bytes {
            return self.restart();
        }
        let mut buffer = vec![0; COPY_BYTES];
        loop {
            let count = self.file.read(&mut buffer)?;
            if count == 0 {
                return Ok(());
            }
            self.hash.update(&buffer[..count]);
            self.bytes += count as u64;
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How much is still to come.
    pub(super) fn left(&self) -> u64 {
        self.wanted.bytes.saturating_sub(self.bytes)
    }

    pub(super) fn add(&mut self, content: &[u8]) -> io::Result<()> {
        self.file.write_all(content)?;
        self.hash.update(content);
        self.bytes += content.len() as u64;
        Ok(())
    }

    /// Begins from the first byte again.
    pub(super) fn restart(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        (self.hash, self.bytes) = (Sha256::new(), 0);
        Ok(())
    }

    /// Checks it and gives it its name.
    pub(super) fn finish(self) -> Result<(), Wrong> {
        if Digest::of_hash(self.hash) != self.wanted.digest {
            std::fs::remove_file(&self.path)?;
            return Err(Wrong::Digest);
        }
        self.file.sync_data()?;
        std::fs::rename(&self.path, &self.target)?;
        if let Some(folder) = self.target.parent() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            fsync(open(folder, flags, Mode::empty()).map_err(io::Error::from)?)
                .map_err(io::Error::from)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(content: &[u8]) -> Descriptor {
        Descriptor {
            digest: Digest::of(content),
            bytes: content.len() as u64,
        }
    }

    fn size(data: &Path, name: &str) -> usize {
        std::fs::read_dir(data.join("blobs").join(name))
            .unwrap()
            .count()
    }

    #[test]
    fn a_download_is_gone_on_with_and_named_only_when_it_is_right() {
        let data = tempfile::tempdir().unwrap();
        let wanted = wanted(b"hello world");
        let mut partial = Blobs::open(data.path())
            .unwrap()
            .begin(&wanted)
            .unwrap()
            .unwrap();
        partial.add(b"hello ").unwrap();
        drop(partial);
        // As another process would, later.
        let blobs = Blobs::open(data.path()).unwrap();
        let mut partial = blobs.begin(&wanted).unwrap().unwrap();
        assert_eq!((partial.bytes(), partial.left()), (6, 5));
        assert!(blobs.get(&wanted.digest).is_err());
        partial.add(b"world").unwrap();
        partial.finish().unwrap();
        let content = io::read_to_string(blobs.get(&wanted.digest).unwrap()).unwrap();
        assert_eq!(content, "hello world");
        assert!(blobs.begin(&wanted).unwrap().is_none());
        assert_eq!(
            (size(data.path(), "sha256"), size(data.path(), "partial")),
            (1, 0)
        );
    }

    #[test]
    fn what_is_not_what_its_digest_says_is_kept_nowhere() {
        let data = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(data.path()).unwrap();
        let mut partial = blobs.begin(&wanted(b"hello")).unwrap().unwrap();
        partial.add(b"jello").unwrap();
        assert!(matches!(partial.finish(), Err(Wrong::Digest)));
        assert_eq!(
            (size(data.path(), "sha256"), size(data.path(), "partial")),
            (0, 0)
        );
    }

    #[test]
    fn cleaning_leaves_what_is_named_and_what_is_in_use() {
        let data = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(data.path()).unwrap();
        for content in [&b"kept"[..], b"gone"] {
            let mut partial = blobs.begin(&wanted(content)).unwrap().unwrap();
            partial.add(content).unwrap();
            partial.finish().unwrap();
        }
        let mut half = blobs.begin(&wanted(b"interrupted")).unwrap().unwrap();
        half.add(b"inter").unwrap();
        drop(half);
        let keep = [Digest::of(b"kept").digits().to_owned()];
        let pull = blobs.in_use().unwrap();
        assert_eq!(blobs.clean(&keep, Clean::Remove).unwrap(), 0);
        assert_eq!(size(data.path(), "sha256"), 2);
        drop(pull);
        assert_eq!(blobs.clean(&keep, Clean::Count).unwrap(), 9);
        assert_eq!(blobs.clean(&keep, Clean::Remove).unwrap(), 9);
        assert!(blobs.get(&Digest::of(b"kept")).is_ok());
        assert_eq!(
            (size(data.path(), "sha256"), size(data.path(), "partial")),
            (1, 0)
        );
    }
}
