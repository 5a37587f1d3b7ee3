//! Reads an archive: manifest first, then the rest, checked to its last byte.

use super::attributes::{Attributes, OnDisk, OverlayNames};
use super::budget::ENTRIES_MAX;
use super::check;
use super::content::{CHUNK_BYTES, Filling};
use super::error::{ArchiveError, Offence};
use super::garden::Garden;
use super::layout::{Frame, MANIFEST_BYTES_MAX, Part, Place, State, place};
use super::plant::Home;
use super::sums::{Spool, Summed, hex};
use crate::Manifest;
use crate::unpack::{Entries, Entry, EntryName, Kind, SetId, Shape, UnpackError, Zstd};
use rustix::fd::BorrowedFd;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Chain, Cursor, Read};

const OWNER_MAX: u64 = 65_535;
const SET_ID: u32 = 0o6000;
/// How a frame of zstd begins (RFC 8878, 3.1.1).
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// An archive of which the manifest was read.
pub struct Arriving<R: Read> {
    entries: Plain<R>,
    sums: Spool,
    manifest: Manifest,
}

/// Members of the plain tar, counted and summed.
pub(super) type Plain<R> = Entries<Summed<Zstd<Whole<R>>>>;

type Whole<R> = Chain<Cursor<Vec<u8>>, R>;

impl<R: Read> std::fmt::Debug for Arriving<R> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("Arriving");
        shown
            .field("manifest", &self.manifest)
            .finish_non_exhaustive()
    }
}

/// On which terms an archive is unpacked.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Most bytes of each state.
    pub state_bytes_max: u64,
    /// What becomes of set-id bits of the box's files. An image has none.
    pub set_id: SetId,
    pub owners: OnDisk,
    pub image: ImageInArchive,
    /// How an overlay is told what is hidden.
    pub overlay: OverlayNames,
}

/// What becomes of an image that comes along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageInArchive {
    Unpacked,
    /// Nobody needs it; its checksums are checked all the same.
    PassedOver,
}

/// Empty folders for what is unpacked.
#[derive(Clone, Copy)]
pub struct Grounds<'a> {
    /// The box as it is becomes the folder of this name, its trees in it as [`Part::name`]s.
    pub now: (BorrowedFd<'a>, &'a str),
    /// Each snapshot becomes a folder under its label.
    pub snapshots: BorrowedFd<'a>,
    /// The image becomes the folder of this name.
    pub image: (BorrowedFd<'a>, &'a str),
    /// Makes the folder of a state, open to its owner only.
    pub make_state: &'a dyn Fn(BorrowedFd<'_>, &OsStr) -> io::Result<()>,
}

impl std::fmt::Debug for Grounds<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Grounds").finish_non_exhaustive()
    }
}

/// What was read, beside the trees.
#[derive(Debug)]
pub struct Received {
    pub manifest: Manifest,
    /// SHA-256 over all of the image that came along.
    pub image: Option<String>,
}

impl<R: Read> Arriving<R> {
    /// Reads the manifest. `spool` is an empty file that is gone when it is closed.
    ///
    /// # Errors
    /// [`ArchiveError`]
    pub fn open(source: R, spool: File) -> Result<Self, ArchiveError> {
        let plain = Summed::new(Zstd::new(begun(source)?));
        let mut entries = Entries::new(plain, ENTRIES_MAX, Shape::Whole);
        let first = entries.next()?.ok_or(ArchiveError::NotOne)?;
        if placed(&first).ok() != Some(Place::Manifest) || first.kind != Kind::File {
            return Err(ArchiveError::NotOne);
        }
        let text = check::whole(&mut entries, &first, MANIFEST_BYTES_MAX)?;
        let manifest = check::manifest(&text)?;
        let mut sums = Spool::new(spool);
        sums.add(&first.name, &Sha256::digest(&text))
            .map_err(spooled)?;
        Ok(Self {
            entries,
            sums,
            manifest,
        })
    }

    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Reads the rest.
    ///
    /// # Errors
    /// [`ArchiveError`]; what was unpacked until then stays, for the caller to remove.
    pub fn receive(
        self,
        grounds: Grounds<'_>,
        rules: Rules,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Received, ArchiveError> {
        let mut reading = Reading {
            known: check::states(&self.manifest)?,
            garden: Garden::new(grounds, rules)?,
            entries: self.entries,
            sums: self.sums,
            members: 1,
            manifest: self.manifest,
            rules,
            trees: BTreeSet::new(),
            image: Sha256::new(),
            buffer: vec![0; CHUNK_BYTES],
        };
        loop {
            let Some(entry) = reading.entries.next()? else {
                return Err(ArchiveError::Cut("it ends without checksums"));
            };
            if placed(&entry)? == Place::Sums {
                return reading.finish(&entry);
            }
            reading.entry(&entry)?;
            progress(reading.entries.source().bytes());
        }
    }
}

/// The trees on their way in.
struct Reading<'into, R: Read> {
    entries: Plain<R>,
    sums: Spool,
    members: u64,
    manifest: Manifest,
    rules: Rules,
    garden: Garden<'into>,
    /// The states there should be.
    known: BTreeSet<State>,
    trees: BTreeSet<(State, Part)>,
    /// Of all members of the image.
    image: Sha256,
    buffer: Vec<u8>,
}

impl<R: Read> Reading<'_, R> {
    fn entry(&mut self, entry: &Entry) -> Result<(), ArchiveError> {
        let refused = |why| ArchiveError::refused(&entry.name, why);
        self.members += 1;
        let (state, part, prefix) = match placed(entry)? {
            Place::Manifest => return Err(refused(Offence::Twice)),
            Place::End | Place::Sums => return Err(ArchiveError::Cut("it ends without checksums")),
            Place::Frame(frame) => return self.frame(entry, frame),
            Place::Tree {
                state,
                part,
                prefix,
            } => (state, part, prefix),
        };
        if part == Part::Image && !self.manifest.with_image {
            return Err(refused(Offence::UnknownImage));
        }
        if !self.known.contains(&state) {
            return Err(refused(Offence::UnknownSnapshot));
        }
        self.garden.bed(&state, part).budget.entry(&state)?;
        if entry.name.len() == prefix {
            if entry.kind != Kind::Folder {
                return Err(refused(Offence::NoFolder));
            }
            self.trees.insert((state.clone(), part));
        }
        let attributes = self.attributes(entry, part).map_err(refused)?;
        if part == Part::Image && self.rules.image == ImageInArchive::PassedOver {
            return self.pass_over(entry);
        }
        let home = Home {
            state,
            part,
            prefix,
        };
        let sum = self.put(entry, &attributes, &home)?;
        if part == Part::Image {
            check::describe(&mut self.image, entry, &attributes, sum.as_deref());
        }
        Ok(())
    }

    fn frame(&mut self, entry: &Entry, frame: Frame) -> Result<(), ArchiveError> {
        let refused = |why| ArchiveError::refused(&entry.name, why);
        if entry.kind != Kind::Folder || entry.size != 0 {
            return Err(refused(Offence::NoFolder));
        }
        match frame {
            Frame::Snapshots if self.garden.has_snapshots => Err(refused(Offence::Twice)),
            Frame::Snapshots => {
                self.garden.has_snapshots = true;
                Ok(())
            }
            Frame::State(state) if self.known.contains(&state) => self.garden.state(&state),
            Frame::State(_) => Err(refused(Offence::UnknownSnapshot)),
        }
    }

    /// Puts an entry in its place; the checksum of a file's content.
    fn put(
        &mut self,
        entry: &Entry,
        attributes: &Attributes,
        home: &Home,
    ) -> Result<Option<Vec<u8>>, ArchiveError> {
        let refused = |why| ArchiveError::refused(&entry.name, why);
        let whiteout = attributes.marks.whiteout;
        match entry.kind {
            Kind::Device => return Err(refused(Offence::Device)),
            Kind::Sparse => return Err(refused(Offence::Sparse)),
            Kind::Other(flag) => return Err(refused(Offence::Kind(flag))),
            Kind::File if !whiteout => return self.file(entry, attributes, home).map(Some),
            Kind::File | Kind::Folder | Kind::Link | Kind::Fifo | Kind::HardLink => {}
        }
        if entry.size > 0 {
            return Err(refused(Offence::Content));
        }
        if entry.kind == Kind::HardLink {
            let target = clean(&entry.link).map_err(|_| refused(Offence::HardLink))?;
            let there = place(&target).map_err(|_| refused(Offence::HardLink))?;
            let kin = home.kinship(&entry.name, &target, there).map_err(refused)?;
            return self
                .garden
                .hard_link((&entry.name, home), (&target, kin), attributes)
                .map(|()| None);
        }
        let bed = self.garden.bed(&home.state, home.part);
        let name = bed.name(&entry.name);
        match entry.kind {
            Kind::Folder => bed.plant.folder(&name, attributes.clone())?,
            Kind::Link => bed.plant.link(&name, &entry.link, attributes)?,
            Kind::Fifo => bed.plant.fifo(&name, attributes)?,
            Kind::File | Kind::HardLink | Kind::Device | Kind::Sparse | Kind::Other(_) => {
                bed.plant.whiteout(&name, attributes)?;
            }
        }
        Ok(None)
    }

    fn file(
        &mut self,
        entry: &Entry,
        attributes: &Attributes,
        home: &Home,
    ) -> Result<Vec<u8>, ArchiveError> {
        let bed = self.garden.bed(&home.state, home.part);
        let mut filling = Filling::new(bed.plant.file(&bed.name(&entry.name))?);
        let mut sum = Sha256::new();
        loop {
            let count = fill(&mut self.entries, &mut self.buffer)?;
            if count == 0 {
                break;
            }
            let chunk = &self.buffer[..count];
            sum.update(chunk);
            filling
                .add(chunk, &mut bed.budget)
                .map_err(|failure| failure.of(&entry.name))?;
        }
        let sum = sum.finalize().to_vec();
        self.sums.add(&entry.name, &sum).map_err(spooled)?;
        let failed = |error| ArchiveError::entry("write", &entry.name, error);
        let file = filling.finish().map_err(failed)?;
        let set = attributes.set(&file, bed.plant.setting);
        set.map_err(|errno| ArchiveError::entry("finish", &entry.name, errno))?;
        Ok(sum)
    }

    /// Reads an entry nobody needs.
    fn pass_over(&mut self, entry: &Entry) -> Result<(), ArchiveError> {
        if entry.kind != Kind::File {
            return Ok(());
        }
        let mut sum = Sha256::new();
        loop {
            let count = fill(&mut self.entries, &mut self.buffer)?;
            if count == 0 {
                break;
            }
            sum.update(&self.buffer[..count]);
        }
        self.sums.add(&entry.name, &sum.finalize()).map_err(spooled)
    }

    fn attributes(&self, entry: &Entry, part: Part) -> Result<Attributes, Offence> {
        let owner = |of, id: u64| match u32::try_from(id) {
            Ok(small) if id <= OWNER_MAX => Ok(small),
            _ => Err(Offence::Owner { of, id }),
        };
        let mut attributes = Attributes::fixed(entry.mode & 0o7777);
        attributes.uid = owner("user", entry.uid)?;
        attributes.gid = owner("group", entry.gid)?;
        attributes.mtime = (entry.mtime, 0);
        attributes.add(&entry.records, part)?;
        let strip = self.rules.set_id == SetId::Strip || part == Part::Image;
        if strip && entry.kind != Kind::Folder {
            attributes.mode &= !SET_ID;
        }
        let redirects = attributes.marks.redirect.is_some();
        if redirects && self.rules.overlay == OverlayNames::User {
            return Err(Offence::Redirect);
        }
        let folder = entry.kind == Kind::Folder;
        if (attributes.marks.opaque || attributes.marks.redirect.is_some()) && !folder {
            return Err(Offence::Overlay);
        }
        let bare = folder || entry.kind == Kind::File && !attributes.marks.whiteout;
        // No system call would set them, nor would ours have read them.
        if !bare && entry.kind != Kind::HardLink && !attributes.xattrs.is_empty() {
            return Err(Offence::Attribute("of something that has none".to_owned()));
        }
        Ok(attributes)
    }

    fn finish(mut self, sums: &Entry) -> Result<Received, ArchiveError> {
        self.garden.finish()?;
        check::sums(&mut self.entries, sums, (self.sums, &mut self.buffer))?;
        check::end(&mut self.entries, self.members)?;
        check::complete(&self.manifest, &self.known, &self.trees)?;
        let unpacked = self.manifest.with_image && self.rules.image == ImageInArchive::Unpacked;
        let image = unpacked.then(|| hex(&self.image.finalize()));
        Ok(Received {
            manifest: self.manifest,
            image,
        })
    }
}

/// Looks whether it is compressed as archives are; gives all of it back.
fn begun<R: Read>(mut source: R) -> Result<Whole<R>, ArchiveError> {
    let mut magic = Vec::with_capacity(MAGIC.len());
    let read = source
        .by_ref()
        .take(MAGIC.len() as u64)
        .read_to_end(&mut magic);
    read.map_err(UnpackError::Read)?;
    if magic != MAGIC {
        return Err(ArchiveError::NotOne);
    }
    Ok(Cursor::new(magic).chain(source))
}

/// Where an entry belongs; its name is exactly as a writer makes it.
pub(super) fn placed(entry: &Entry) -> Result<Place, ArchiveError> {
    let refused = |why| ArchiveError::refused(&entry.name, why);
    let name = clean(&entry.name).map_err(refused)?;
    place(&name).map_err(refused)
}

/// A name that is relative and the only way to write it.
fn clean(raw: &[u8]) -> Result<Vec<u8>, Offence> {
    let name = EntryName::parse(raw, 0).map_err(Offence::Name)?;
    match name {
        Some(name) if name.as_bytes() == raw => Ok(raw.to_vec()),
        _ => Err(Offence::NoPlace),
    }
}

/// Reads until the buffer is full or the content at its end.
pub(super) fn fill<R: Read>(
    entries: &mut Plain<R>,
    buffer: &mut [u8],
) -> Result<usize, ArchiveError> {
    let mut filled = 0;
    while filled < buffer.len() {
        match entries.read(&mut buffer[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

pub(super) fn spooled(error: io::Error) -> ArchiveError {
    ArchiveError::entry("write", b"SHA256SUMS", error)
}
