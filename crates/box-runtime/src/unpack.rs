//! Unpacks archives nobody vouches for: root file systems and npm packages, one unpacker for both.
//!
//! Everything is put beneath one open folder with `openat2` and `RESOLVE_BENEATH |
//! RESOLVE_NO_SYMLINKS` (openat2(2)), so no name, however made, leads out of it and no link of the
//! archive is ever followed. What an archive may hold:
//!
//! - plain files, folders and hard links to files the archive itself brought before;
//! - symbolic links, verbatim, where [`Links::Verbatim`] says so. A root file system is full of
//!   absolute ones (`/etc/alternatives`), which is harmless while they are only stored: an entry
//!   that lies *behind* a link is refused, and so is a hard link with an absolute target;
//! - no device node, fifo, sparse file or kind nobody knows: the entry is named and refused.
//!
//! Extended attributes are dropped, file capabilities among them. Sizes and counts are bounded by
//! the [`Policy`]. The caller unpacks into a [`Staging`] folder and publishes it when all went
//! well, so a failure leaves nothing behind.

mod compression;
mod entries;
mod error;
mod name;
mod pax;
mod staging;
mod tree;

pub use error::{Refusal, UnpackError};
pub use staging::{Published, Staging, clear, hold};

use entries::{Entries, Entry, Kind};
use name::EntryName;
use std::io::{Read, Write as _};
use std::os::fd::BorrowedFd;
use tree::{Meta, Tree};

/// Highest numeric owner an entry may have: a box has a range of 65,536 ids.
pub const OWNER_MAX: u64 = 65_535;
/// How much is copied at once.
const COPY_BYTES: usize = 128 << 10;
/// What may follow the end mark: tar pads its output to a whole record.
const TRAILING_BYTES_MAX: u64 = 1 << 20;

/// What an archive may do, and how much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    pub owners: Owners,
    pub set_id: SetId,
    pub links: Links,
    pub modes: Modes,
    /// Leading parts of every name that are dropped; what has no more parts is left out.
    pub strip: usize,
    pub entries_max: u64,
    /// Sum of all file sizes.
    pub bytes_max: u64,
}

/// Whose the unpacked files are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owners {
    /// As the archive says, numerically, 0 to [`OWNER_MAX`].
    Keep,
    /// The unpacking process'.
    Ours,
}

/// What becomes of the set-user-id and set-group-id bits of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetId {
    Keep,
    /// Boxes run with `no_new_privs`, where the bits mean nothing; on the host they would.
    Strip,
}

/// What becomes of symbolic links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    Verbatim,
    Refuse,
}

/// Which permission bits files get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Modes {
    Keep,
    /// As npm does it: folders 0755, files 0644 or 0755.
    Package,
}

impl Policy {
    /// For the root file system of an image.
    pub const IMAGE: Self = Self {
        owners: Owners::Keep,
        set_id: SetId::Strip,
        links: Links::Verbatim,
        modes: Modes::Keep,
        strip: 0,
        entries_max: 1_000_000,
        bytes_max: 32 << 30,
    };
    /// For one npm package, whose files all lie in one folder.
    pub const PACKAGE: Self = Self {
        owners: Owners::Ours,
        set_id: SetId::Strip,
        links: Links::Refuse,
        modes: Modes::Package,
        strip: 1,
        entries_max: 50_000,
        bytes_max: 1 << 30,
    };
}

/// How much came out of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Unpacked {
    pub entries: u64,
    /// Sum of the file sizes.
    pub bytes: u64,
}

/// Unpacks a tar, plain or gzip, beneath the folder `root`, reading `archive` to its end.
///
/// # Errors
/// [`UnpackError`]; what was unpacked until then stays, for the caller to remove.
pub fn unpack<R: Read>(
    archive: R,
    root: BorrowedFd<'_>,
    policy: &Policy,
) -> Result<Unpacked, UnpackError> {
    let mut entries = Entries::new(compression::open(archive)?, policy.entries_max);
    let mut tree = Tree::new(root);
    let mut done = Unpacked::default();
    let mut buffer = vec![0; COPY_BYTES];
    while let Some(entry) = entries.next()? {
        let refused = |why| UnpackError::refused(&entry.name, why);
        // A header can say any size up to 2^64.
        done.bytes = done.bytes.saturating_add(entry.size);
        if done.bytes > policy.bytes_max {
            return Err(UnpackError::TooBig {
                max: policy.bytes_max,
            });
        }
        let Some(name) = EntryName::parse(&entry.name, policy.strip).map_err(refused)? else {
            continue;
        };
        let meta = policy.meta(&entry).map_err(refused)?;
        if let Some(mut file) = place(&mut tree, &name, &entry, &meta, policy)? {
            copy(&mut entries, &mut file, &name, &mut buffer)?;
            tree::set(&file, &meta).map_err(|error| UnpackError::io("finish", &name, error))?;
        } else if entry.size > 0 {
            return Err(refused(Refusal::Content));
        }
        done.entries += 1;
        if done.entries + tree.implied() > policy.entries_max {
            return Err(UnpackError::TooManyEntries {
                max: policy.entries_max,
            });
        }
    }
    tree.finish()?;
    entries.drain(TRAILING_BYTES_MAX)?;
    Ok(done)
}

/// Makes what the entry is; a file comes back to be filled.
fn place(
    tree: &mut Tree<'_>,
    name: &EntryName,
    entry: &Entry,
    meta: &Meta,
    policy: &Policy,
) -> Result<Option<std::fs::File>, UnpackError> {
    let refused = |why| UnpackError::refused(&entry.name, why);
    match entry.kind {
        Kind::File => return tree.file(name).map(Some),
        Kind::Folder => tree.folder(name, meta)?,
        Kind::Link if policy.links == Links::Refuse => return Err(refused(Refusal::Link)),
        Kind::Link => tree.link(name, &entry.link, meta)?,
        Kind::HardLink if policy.links == Links::Refuse => return Err(refused(Refusal::HardLink)),
        Kind::HardLink => {
            let target = EntryName::parse(&entry.link, policy.strip)
                .map_err(|why| refused(Refusal::HardLinkTarget(Box::new(why))))?
                .ok_or_else(|| refused(Refusal::HardLinkToNothing))?;
            tree.hard_link(name, &target)?;
        }
        Kind::Device => return Err(refused(Refusal::Device)),
        Kind::Fifo => return Err(refused(Refusal::Fifo)),
        Kind::Sparse => return Err(refused(Refusal::Sparse)),
        Kind::Other(flag) => return Err(refused(Refusal::Kind(flag))),
    }
    Ok(None)
}

fn copy<R: Read>(
    entries: &mut Entries<R>,
    file: &mut std::fs::File,
    name: &EntryName,
    buffer: &mut [u8],
) -> Result<(), UnpackError> {
    loop {
        let count = entries.read(buffer)?;
        if count == 0 {
            return Ok(());
        }
        file.write_all(&buffer[..count])
            .map_err(|error| UnpackError::io("write", name, error))?;
    }
}

impl Policy {
    fn meta(&self, entry: &Entry) -> Result<Meta, Refusal> {
        let mut mode = entry.mode & 0o7777;
        if self.set_id == SetId::Strip && entry.kind != Kind::Folder {
            mode &= 0o1777;
        }
        if self.modes == Modes::Package {
            let least = if entry.kind == Kind::Folder {
                0o777
            } else {
                0o666
            };
            mode = (mode & 0o777 | least) & !0o022;
        }
        let owner = match self.owners {
            Owners::Ours => None,
            Owners::Keep => Some((owner(entry.uid, "user")?, owner(entry.gid, "group")?)),
        };
        Ok(Meta {
            mode,
            owner,
            mtime: entry.mtime,
        })
    }
}

fn owner(id: u64, of: &'static str) -> Result<u32, Refusal> {
    match u32::try_from(id) {
        Ok(small) if id <= OWNER_MAX => Ok(small),
        _ => Err(Refusal::Owner { of, id }),
    }
}

#[cfg(test)]
mod tests;
