//! Writes an archive: manifest, trees, checksums, end mark.

use super::attributes::Attributes;
use super::content::CHUNK_BYTES;
use super::error::{ArchiveError, written};
use super::header::{self, Member};
use super::layout::{BOX, END, EndMark, MANIFEST, MANIFEST_BYTES_MAX, SNAPSHOTS, SUMS, State};
use super::sums::{Spool, Summed};
use super::walk::{self, Found, Tree, Walk};
use crate::Manifest;
use crate::unpack::{NAME_BYTES_MAX, shown};
use box_api::Label;
use rustix::fs::Stat;
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{self, Read as _, Write};
use std::os::unix::fs::FileExt as _;

/// Level of zstd(1), its own default.
const LEVEL: i32 = 3;
/// A file shorter than that is written again rather than compared.
const COMPARED_BYTES_MIN: i64 = 1024;
/// What was left out is told by name so many times, then counted.
const LEFT_OUT_TOLD_MAX: usize = 20;
/// Holes of all files together; whoever reads takes them up to sixteen times the box's disk limit.
const HOLE_BYTES_MAX: u64 = 64 << 30;
/// Unit of `st_blocks` (inode(7)).
const STAT_BLOCK_BYTES: u64 = 512;
/// Of folders that only hold trees, and of our own files.
const FRAME: Attributes = Attributes::fixed(0o755);
const OWN_FILE: Attributes = Attributes::fixed(0o644);

/// What of a box did not travel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// One line each, the first twenty.
    pub told: Vec<String>,
    pub count: u64,
}

impl LeftOut {
    fn add(&mut self, name: &[u8], why: &str) {
        self.count += 1;
        if self.told.len() < LEFT_OUT_TOLD_MAX {
            self.told.push(format!("`{}` is {why}", shown(name)));
        }
    }
}

/// An archive being written.
pub struct ArchiveWriter<'p, W: Write> {
    out: Summed<zstd::Encoder<'static, W>>,
    sums: Spool,
    members: u64,
    has_snapshots: bool,
    left_out: LeftOut,
    hole_bytes: u64,
    buffer: Vec<u8>,
    other: Vec<u8>,
    /// Is told how many bytes of plain tar there are so far.
    progress: &'p mut dyn FnMut(u64),
}

impl<W: Write> std::fmt::Debug for ArchiveWriter<'_, W> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("ArchiveWriter");
        shown
            .field("members", &self.members)
            .finish_non_exhaustive()
    }
}

impl<'p, W: Write> ArchiveWriter<'p, W> {
    /// Begins with the manifest. `spool` is an empty file that is gone when it is closed.
    ///
    /// # Errors
    /// What the sink said.
    pub fn begin(
        sink: W,
        spool: File,
        manifest: &Manifest,
        progress: &'p mut dyn FnMut(u64),
    ) -> Result<Self, ArchiveError> {
        let mut encoder = zstd::Encoder::new(sink, LEVEL).map_err(written)?;
        encoder.include_checksum(true).map_err(written)?;
        let mut writer = Self {
            out: Summed::new(encoder),
            sums: Spool::new(spool),
            members: 0,
            has_snapshots: false,
            left_out: LeftOut::default(),
            hole_bytes: 0,
            buffer: vec![0; CHUNK_BYTES],
            other: vec![0; CHUNK_BYTES],
            progress,
        };
        let text = json(manifest)?;
        if text.len() as u64 > MANIFEST_BYTES_MAX {
            return Err(ArchiveError::Manifest("is too long".to_owned()));
        }
        put_own(&mut writer.out, MANIFEST, &text).map_err(written)?;
        writer.members += 1;
        let sum = Sha256::digest(&text);
        writer
            .sums
            .add(MANIFEST.as_bytes(), &sum)
            .map_err(written)?;
        writer.frame(BOX)?;
        Ok(writer)
    }

    /// The trees of a snapshot follow, after those of the box as it is.
    ///
    /// # Errors
    /// What the sink said.
    pub fn snapshot(&mut self, label: &Label) -> Result<(), ArchiveError> {
        if !std::mem::replace(&mut self.has_snapshots, true) {
            self.frame(SNAPSHOTS)?;
        }
        self.frame(&State::Snapshot(label.clone()).folder())
    }

    /// Writes a tree. What is the same in one of `before`, which were written already, is written
    /// as a hard link to it.
    ///
    /// # Errors
    /// When the tree cannot be read, or the sink written.
    pub fn tree(&mut self, tree: &Tree<'_>, before: &[Tree<'_>]) -> Result<(), ArchiveError> {
        let top = tree.name();
        let failed = |error| ArchiveError::entry("open", top.as_bytes(), error);
        let mut walk = Walk::new(tree).map_err(failed)?;
        let mut name = Vec::new();
        while let Some(found) = walk.next()? {
            name.clear();
            name.extend(top.bytes());
            walk::add(&mut name, &walk.path);
            let too_deep = name.len() >= NAME_BYTES_MAX;
            if too_deep && matches!(found, Found::Folder(_)) {
                walk.leave().map_err(failed)?;
            }
            if too_deep {
                self.left_out.add(&name, "too deep for an archive");
                continue;
            }
            if walk.attributes_left_out {
                self.left_out
                    .add(&name, "without some of its attributes in the archive");
            }
            self.found(&name, &walk.path, found, before)?;
        }
        Ok(())
    }

    fn found(
        &mut self,
        name: &[u8],
        path: &[u8],
        found: Found,
        before: &[Tree<'_>],
    ) -> Result<(), ArchiveError> {
        let member = |kind, link, size| Member {
            name,
            kind,
            link,
            size,
        };
        match found {
            Found::Folder(attributes) => self.member(member(b'5', &[], 0), &attributes),
            Found::Link(target, attributes) => self.member(member(b'2', &target, 0), &attributes),
            Found::Fifo(attributes) => self.member(member(b'6', &[], 0), &attributes),
            Found::HardLink(first, attributes) => {
                let top = &name[..name.len() - path.len()];
                self.member(member(b'1', &[top, &first].concat(), 0), &attributes)
            }
            Found::Whiteout(mut attributes) => {
                // The overlay's own, who is nobody in the box.
                (attributes.uid, attributes.gid) = (0, 0);
                attributes.marks.whiteout = true;
                self.member(member(b'0', &[], 0), &attributes)
            }
            Found::File(file, attributes, stat) => {
                let same = self.same(&file, &attributes, &stat, (path, before))?;
                if let Some(other) = same {
                    return self.member(member(b'1', &other, 0), &attributes);
                }
                let size = u64::try_from(stat.st_size).unwrap_or(0);
                if self.is_too_hollow(&stat) {
                    return self.without_hollow(name, &stat);
                }
                self.member(member(b'0', &[], size), &attributes)?;
                self.content(name, &file, size)
            }
            Found::Odd(what) => {
                self.left_out.add(name, what);
                Ok(())
            }
        }
    }

    /// Whether a file is so much of holes that writing its zeros would take all day.
    fn is_too_hollow(&mut self, stat: &Stat) -> bool {
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        let on_disk = u64::try_from(stat.st_blocks).unwrap_or(0) * STAT_BLOCK_BYTES;
        let holes = self.hole_bytes + size.saturating_sub(on_disk);
        let is_too_hollow = holes > HOLE_BYTES_MAX;
        if !is_too_hollow {
            self.hole_bytes = holes;
        }
        is_too_hollow
    }

    /// It is left out and told; one with other names cannot be, as they would lead nowhere.
    fn without_hollow(&mut self, name: &[u8], stat: &Stat) -> Result<(), ArchiveError> {
        if stat.st_nlink > 1 {
            let error = io::Error::other("it has more holes than an archive carries");
            return Err(ArchiveError::entry("write", name, error));
        }
        self.left_out
            .add(name, "of holes, more than an archive carries");
        Ok(())
    }

    /// The name of a file written before that is this one in every respect.
    fn same(
        &mut self,
        file: &File,
        attributes: &Attributes,
        stat: &Stat,
        (path, before): (&[u8], &[Tree<'_>]),
    ) -> Result<Option<Vec<u8>>, ArchiveError> {
        if stat.st_size < COMPARED_BYTES_MIN {
            return Ok(None);
        }
        for tree in before {
            let Some((other, others, its)) = walk::file_at(tree, path) else {
                continue;
            };
            if others != *attributes || its.st_size != stat.st_size {
                continue;
            }
            let one_inode = (its.st_dev, its.st_ino) == (stat.st_dev, stat.st_ino);
            let failed = |error| ArchiveError::entry("read", path, error);
            if one_inode || self.equal(file, &other).map_err(failed)? {
                return Ok(Some([tree.name().as_bytes(), b"/", path].concat()));
            }
        }
        Ok(None)
    }

    fn equal(&mut self, one: &File, other: &File) -> io::Result<bool> {
        let mut at = 0;
        loop {
            let count = one.read_at(&mut self.buffer, at)?;
            if count == 0 {
                return Ok(true);
            }
            match other.read_exact_at(&mut self.other[..count], at) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
                read => read?,
            }
            if self.buffer[..count] != self.other[..count] {
                return Ok(false);
            }
            at += count as u64;
        }
    }

    fn content(&mut self, name: &[u8], mut file: &File, size: u64) -> Result<(), ArchiveError> {
        let mut sum = Sha256::new();
        let mut left = size;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(CHUNK_BYTES);
            let count = file
                .read(&mut self.buffer[..most])
                .map_err(|error| ArchiveError::entry("read", name, error))?;
            if count == 0 {
                return Err(ArchiveError::Changed { entry: shown(name) });
            }
            sum.update(&self.buffer[..count]);
            self.out.write_all(&self.buffer[..count]).map_err(written)?;
            left -= count as u64;
            (self.progress)(self.out.bytes());
        }
        header::pad(&mut self.out, size).map_err(written)?;
        self.sums.add(name, &sum.finalize()).map_err(written)
    }

    /// Writes the checksums and the end; gives the sink back, all of it written.
    ///
    /// # Errors
    /// What the sink said.
    pub fn finish(self) -> Result<(W, LeftOut), ArchiveError> {
        let Self {
            mut out,
            sums,
            members,
            left_out,
            ..
        } = self;
        let (bytes, mut lines) = sums.read().map_err(written)?;
        header::put(&mut out, &Member::file(SUMS, bytes), &OWN_FILE).map_err(written)?;
        io::copy(&mut lines, &mut out).map_err(written)?;
        header::pad(&mut out, bytes).map_err(written)?;
        let end = EndMark {
            members,
            bytes: out.bytes(),
            sha256: out.sum(),
        };
        let text = json(&end)?;
        put_own(&mut out, END, &text).map_err(written)?;
        header::end(&mut out).map_err(written)?;
        let sink = out.into_inner().finish().map_err(written)?;
        Ok((sink, left_out))
    }

    fn frame(&mut self, name: &str) -> Result<(), ArchiveError> {
        let member = Member {
            name: name.as_bytes(),
            kind: b'5',
            link: &[],
            size: 0,
        };
        self.member(member, &FRAME)
    }

    fn member(&mut self, member: Member<'_>, attributes: &Attributes) -> Result<(), ArchiveError> {
        header::put(&mut self.out, &member, attributes).map_err(written)?;
        self.members += 1;
        (self.progress)(self.out.bytes());
        Ok(())
    }
}

fn put_own(out: &mut impl Write, name: &str, text: &[u8]) -> io::Result<()> {
    let size = text.len() as u64;
    header::put(out, &Member::file(name, size), &OWN_FILE)?;
    out.write_all(text)?;
    header::pad(out, size)
}

fn json(value: &impl serde::Serialize) -> Result<Vec<u8>, ArchiveError> {
    let text = serde_json::to_vec_pretty(value);
    text.map_err(|error| ArchiveError::Manifest(error.to_string()))
}
