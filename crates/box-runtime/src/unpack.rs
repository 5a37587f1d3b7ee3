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
//! A layer ([`Shape::Layer`]) goes over what is there: it may hide and replace what layers below
//! brought, and lie behind a link of theirs, which is then resolved with `RESOLVE_IN_ROOT`. Device
//! nodes and fifos in it are left out, since every box gets its own.
//!
//! Extended attributes are dropped, file capabilities among them. Sizes and counts are bounded by
//! the [`Policy`]. The caller unpacks into a [`Staging`] folder and publishes it when all went
//! well, so a failure leaves nothing behind.

mod compression;
mod entries;
mod error;
mod layer;
mod name;
mod pax;
mod staging;
mod tree;
mod zstd;

pub(crate) use entries::{Entries, Entry, Kind};
pub(crate) use error::shown;
pub use error::{Refusal, UnpackError};
pub(crate) use name::{EntryName, NAME_BYTES_MAX};
pub use staging::{Published, Staging, clear, hold};
pub(crate) use zstd::Zstd;

use std::io::{Read, Write as _};
use std::os::fd::BorrowedFd;
use tree::{Meta, Tree};

/// Highest numeric owner an entry may have: a box has a range of 65,536 ids.
pub const OWNER_MAX: u64 = 65_535;
/// Whose files are that belong to nobody a box can have (passwd of every Linux).
pub const NOBODY: u32 = 65_534;
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
    pub shape: Shape,
    /// Leading parts of every name that are dropped; what has no more parts is left out.
    pub strip: usize,
    pub entries_max: u64,
    /// Sum of all file sizes.
    pub bytes_max: u64,
}

/// What an archive is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A whole tree, into an empty folder.
    Whole,
    /// One layer of an image, over the layers below it.
    Layer,
}

/// Whose the unpacked files are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owners {
    /// As the archive says, numerically, 0 to [`OWNER_MAX`].
    Keep,
    /// As the archive says; [`NOBODY`]'s where a box has no such id.
    Squash,
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
    /// Those that stay below the root, whatever other links there are; the rest, and hard links,
    /// are left out and refused.
    Inside,
    Refuse,
}

/// Which permission bits files get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Modes {
    Keep,
    /// As npm does it: folders 0755, files 0644 or 0755.
    Package,
    /// Reading, writing and running, and writing only for whose they are.
    Plain,
}

impl Policy {
    /// For the root file system of an image.
    pub const IMAGE: Self = Self {
        owners: Owners::Keep,
        set_id: SetId::Strip,
        links: Links::Verbatim,
        modes: Modes::Keep,
        shape: Shape::Whole,
        strip: 0,
        entries_max: 1_000_000,
        bytes_max: 32 << 30,
    };
    /// For one layer of an image. The limits are those of all its layers together.
    pub const LAYER: Self = Self {
        owners: Owners::Squash,
        shape: Shape::Layer,
        ..Self::IMAGE
    };
    /// For one npm package, whose files all lie in one folder.
    pub const PACKAGE: Self = Self {
        owners: Owners::Ours,
        set_id: SetId::Strip,
        links: Links::Refuse,
        modes: Modes::Package,
        shape: Shape::Whole,
        strip: 1,
        entries_max: 50_000,
        bytes_max: 1 << 30,
    };
    /// For what a box sends its owner, into a folder of theirs.
    pub const COPY: Self = Self {
        owners: Owners::Ours,
        set_id: SetId::Strip,
        links: Links::Inside,
        modes: Modes::Plain,
        shape: Shape::Whole,
        strip: 0,
        entries_max: 2_000_000,
        bytes_max: 64 << 30,
    };
    /// The same for one file.
    pub const COPIED_FILE: Self = Self {
        links: Links::Refuse,
        entries_max: 1,
        ..Self::COPY
    };
}

/// How much came out of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Unpacked {
    pub entries: u64,
    /// Sum of the file sizes.
    pub bytes: u64,
    /// Device nodes and fifos of layers.
    pub left_out: u64,
}

/// Unpacks a tar, plain, gzip or zstd, beneath the folder `root`, reading `archive` to its end.
///
/// # Errors
/// [`UnpackError`]; what was unpacked until then stays, for the caller to remove.
pub fn unpack<R: Read>(
    archive: R,
    root: BorrowedFd<'_>,
    policy: &Policy,
) -> Result<Unpacked, UnpackError> {
    unpack_seen(archive, root, policy, |_| {})
}

/// As [`unpack`], showing `see` every byte of the plain tar, for its digest.
///
/// # Errors
/// As those of [`unpack`].
pub fn unpack_seen<R: Read>(
    archive: R,
    root: BorrowedFd<'_>,
    policy: &Policy,
    see: impl FnMut(&[u8]),
) -> Result<Unpacked, UnpackError> {
    let plain = Seen {
        source: compression::open(archive)?,
        see,
    };
    let mut entries = Entries::new(plain, policy.entries_max, policy.shape);
    let mut tree = Tree::new(root, policy.shape);
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
        let Some(name) = policy.name(&entry.name).map_err(refused)? else {
            continue;
        };
        if policy.shape == Shape::Layer && tree.hide(&name)? {
            continue;
        }
        if policy.leaves_out(&entry, &name) {
            done.left_out += 1;
            continue;
        }
        // A folder of the owner's stays as they have it.
        if policy.modes == Modes::Plain && name.is_root() && entry.kind == Kind::Folder {
            continue;
        }
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
        Kind::HardLink if policy.links != Links::Verbatim => {
            return Err(refused(Refusal::HardLink));
        }
        Kind::HardLink => {
            let target = policy
                .name(&entry.link)
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
    /// Some who make layers write names from the root on.
    fn name(&self, raw: &[u8]) -> Result<Option<EntryName>, Refusal> {
        let raw = match (self.shape, raw.iter().position(|byte| *byte != b'/')) {
            (Shape::Whole, _) => raw,
            (Shape::Layer, Some(start)) => &raw[start..],
            (Shape::Layer, None) if raw.is_empty() => raw,
            (Shape::Layer, None) => b".",
        };
        EntryName::parse(raw, self.strip)
    }

    fn leaves_out(&self, entry: &Entry, name: &EntryName) -> bool {
        let odd = self.shape == Shape::Layer && matches!(entry.kind, Kind::Device | Kind::Fifo);
        let leads_out = self.links == Links::Inside
            && entry.kind == Kind::Link
            && !name.stays_inside(&entry.link);
        odd || leads_out
    }

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
        if self.modes == Modes::Plain {
            let least = if entry.kind == Kind::Folder { 0o700 } else { 0 };
            mode = (mode & 0o777 | least) & !0o022;
        }
        let owner = match self.owners {
            Owners::Ours => None,
            Owners::Keep => Some((owner(entry.uid, "user")?, owner(entry.gid, "group")?)),
            Owners::Squash => {
                let or_nobody = |id| owner(id, "").unwrap_or(NOBODY);
                Some((or_nobody(entry.uid), or_nobody(entry.gid)))
            }
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

/// A source whose bytes somebody else sees as well.
struct Seen<R, F> {
    source: R,
    see: F,
}

impl<R: Read, F: FnMut(&[u8])> Read for Seen<R, F> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.source.read(buffer)?;
        (self.see)(&buffer[..count]);
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
