//! Reads the commits of a pack as it comes (gitformat-pack(5)), to see which commit is before which.
//! Everything else in it is passed over. Pure; bounded in memory and in work.

use super::push::Oid;
use flate2::{Decompress, FlushDecompress, Status};
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Longest commit that is read.
const COMMIT_BYTES_MAX: usize = 1 << 20;
/// What the commits of one pack hold together.
const COMMITS_BYTES_MAX: usize = 16 << 20;
/// What a pack may unfold to while it is read.
const UNFOLDED_BYTES_MAX: u64 = 256 << 20;
/// Longest head of an object: type and size, and the name or place of another object.
const HEAD_BYTES_MAX: usize = 10 + 20;
const COMMIT: u8 = 1;
const OFFSET_DELTA: u8 = 6;
const NAMED_DELTA: u8 = 7;

/// The pack is none, or more than is read. What was read stays true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unreadable;

/// What comes next.
enum Expects {
    Head,
    Object,
    Unfolding(Unfolding),
    Nothing,
}

/// An object on its way out of zlib.
struct Unfolding {
    at: u64,
    size: usize,
    kept: Kept,
    length: usize,
}

/// What is done with an object's bytes.
enum Kept {
    Not,
    Commit(Vec<u8>),
    /// What is to be done to a commit to get this one.
    Delta {
        base: Arc<[u8]>,
        delta: Vec<u8>,
    },
}

pub(crate) struct PackReader {
    expects: Expects,
    /// Of a head that is not whole yet.
    partial: Vec<u8>,
    /// Bytes taken so far.
    at: u64,
    objects_left: u32,
    zlib: Decompress,
    unfolded: u64,
    parents: HashMap<Oid, Vec<Oid>>,
    by_place: HashMap<u64, Arc<[u8]>>,
    by_name: HashMap<Oid, Arc<[u8]>>,
    commits_bytes: usize,
    saw_other: bool,
}

impl PackReader {
    pub(crate) fn new() -> Self {
        Self {
            expects: Expects::Head,
            partial: Vec::new(),
            at: 0,
            objects_left: 0,
            zlib: Decompress::new(true),
            unfolded: 0,
            parents: HashMap::new(),
            by_place: HashMap::new(),
            by_name: HashMap::new(),
            commits_bytes: 0,
            saw_other: false,
        }
    }

    /// Commits read so far.
    pub(crate) fn commits(&self) -> usize {
        self.parents.len()
    }

    /// Whether something that is no commit was seen. git sends commits first.
    pub(crate) fn saw_other(&self) -> bool {
        self.saw_other
    }

    /// Whether `new` is `old`, or comes after it along commits of this pack.
    pub(crate) fn leads(&self, old: Oid, new: Oid) -> bool {
        let mut seen = HashSet::new();
        let mut open = vec![new];
        while let Some(commit) = open.pop() {
            if commit == old {
                return true;
            }
            if seen.insert(commit) {
                open.extend(self.parents.get(&commit).into_iter().flatten());
            }
        }
        false
    }

    /// Takes the next bytes of the pack.
    pub(crate) fn feed(&mut self, mut bytes: &[u8]) -> Result<(), Unreadable> {
        while !bytes.is_empty() {
            bytes = match std::mem::replace(&mut self.expects, Expects::Nothing) {
                Expects::Head => self.head(bytes)?,
                Expects::Object => self.object(bytes)?,
                Expects::Unfolding(unfolding) => self.unfold(unfolding, bytes)?,
                // The sum at the end is the server's to check.
                Expects::Nothing => return Ok(()),
            };
        }
        Ok(())
    }

    fn head<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], Unreadable> {
        let wanted = 12 - self.partial.len();
        let (taken, rest) = bytes.split_at(wanted.min(bytes.len()));
        self.partial.extend_from_slice(taken);
        self.expects = Expects::Head;
        if self.partial.len() == 12 {
            let number = |at: usize| {
                let four = self.partial.get(at..at + 4).unwrap_or_default();
                four.iter()
                    .fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte))
            };
            if !self.partial.starts_with(b"PACK") || !matches!(number(4), 2 | 3) {
                return Err(Unreadable);
            }
            self.objects_left = number(8);
            self.partial.clear();
            self.at = 12;
            self.expects = self.next_object();
        }
        Ok(rest)
    }

    fn next_object(&self) -> Expects {
        if self.objects_left == 0 {
            Expects::Nothing
        } else {
            Expects::Object
        }
    }

    /// The head of an object, byte by byte: it may end anywhere.
    fn object<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], Unreadable> {
        for (taken, byte) in bytes.iter().enumerate() {
            self.partial.push(*byte);
            if let Some(head) = ObjectHead::read(&self.partial)? {
                let kept = self.keep(&head)?;
                let at = self.at;
                self.at += self.partial.len() as u64;
                self.partial.clear();
                self.zlib.reset(true);
                self.expects = Expects::Unfolding(Unfolding {
                    at,
                    size: head.size,
                    kept,
                    length: 0,
                });
                return Ok(bytes.get(taken + 1..).unwrap_or_default());
            }
        }
        self.expects = Expects::Object;
        Ok(&[])
    }

    fn keep(&mut self, head: &ObjectHead) -> Result<Kept, Unreadable> {
        let base = match head.base {
            Base::None => None,
            Base::Before(distance) => {
                let place = self.at.checked_sub(distance).ok_or(Unreadable)?;
                self.by_place.get(&place)
            }
            Base::Named(oid) => self.by_name.get(&oid),
        };
        let kept = match (head.kind, base) {
            (COMMIT, _) => Kept::Commit(Vec::new()),
            (OFFSET_DELTA | NAMED_DELTA, Some(base)) => Kept::Delta {
                base: Arc::clone(base),
                delta: Vec::new(),
            },
            // Of something that is no commit, or is not in this pack before this.
            _ => {
                self.saw_other = true;
                return Ok(Kept::Not);
            }
        };
        if head.size > COMMIT_BYTES_MAX {
            return Err(Unreadable);
        }
        Ok(kept)
    }

    fn unfold<'a>(
        &mut self,
        mut unfolding: Unfolding,
        bytes: &'a [u8],
    ) -> Result<&'a [u8], Unreadable> {
        let mut out = [0; 16 << 10];
        let mut rest = bytes;
        loop {
            let (in_before, out_before) = (self.zlib.total_in(), self.zlib.total_out());
            let status = self.zlib.decompress(rest, &mut out, FlushDecompress::None);
            let status = status.map_err(|_| Unreadable)?;
            let taken = usize::try_from(self.zlib.total_in() - in_before).unwrap_or(usize::MAX);
            let made = usize::try_from(self.zlib.total_out() - out_before).unwrap_or(usize::MAX);
            rest = rest.get(taken..).ok_or(Unreadable)?;
            self.at += taken as u64;
            self.unfolded += made as u64;
            unfolding.length += made;
            if unfolding.length > unfolding.size || self.unfolded > UNFOLDED_BYTES_MAX {
                return Err(Unreadable);
            }
            let piece = out.get(..made).ok_or(Unreadable)?;
            match &mut unfolding.kept {
                Kept::Not => {}
                Kept::Commit(bytes) | Kept::Delta { delta: bytes, .. } => {
                    bytes.extend_from_slice(piece);
                }
            }
            if status == Status::StreamEnd {
                self.unfolded(unfolding)?;
                return Ok(rest);
            }
            match (taken, made, rest.len()) {
                (0, 0, 0) => {
                    self.expects = Expects::Unfolding(unfolding);
                    return Ok(rest);
                }
                (0, 0, _) => return Err(Unreadable),
                (_, _, _) => {}
            }
        }
    }

    fn unfolded(&mut self, unfolding: Unfolding) -> Result<(), Unreadable> {
        if unfolding.length != unfolding.size {
            return Err(Unreadable);
        }
        self.objects_left -= 1;
        self.expects = self.next_object();
        let commit = match unfolding.kept {
            Kept::Not => return Ok(()),
            Kept::Commit(commit) => commit,
            Kept::Delta { base, delta } => applied(&base, &delta).ok_or(Unreadable)?,
        };
        self.commits_bytes += commit.len();
        if self.commits_bytes > COMMITS_BYTES_MAX {
            return Err(Unreadable);
        }
        let oid = name_of(&commit);
        let parents = parents(&commit).ok_or(Unreadable)?;
        let commit: Arc<[u8]> = commit.into();
        self.by_place.insert(unfolding.at, Arc::clone(&commit));
        self.by_name.insert(oid, commit);
        self.parents.insert(oid, parents);
        Ok(())
    }
}

/// The name git has for a commit.
pub(crate) fn name_of(commit: &[u8]) -> Oid {
    let mut context = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    context.update(format!("commit {}\0", commit.len()).as_bytes());
    context.update(commit);
    let mut oid = Oid::ZERO;
    let sum = context.finish();
    oid.0
        .iter_mut()
        .zip(sum.as_ref())
        .for_each(|(to, from)| *to = *from);
    oid
}

/// `tree <oid>`, then a line `parent <oid>` for each.
fn parents(commit: &[u8]) -> Option<Vec<Oid>> {
    let mut lines = commit.split(|byte| *byte == b'\n');
    Oid::parse(lines.next()?.strip_prefix(b"tree ")?)?;
    let mut parents = Vec::new();
    for line in lines {
        let Some(parent) = line.strip_prefix(b"parent ") else {
            break;
        };
        parents.push(Oid::parse(parent)?);
    }
    Some(parents)
}

enum Base {
    None,
    /// So many bytes before this object.
    Before(u64),
    Named(Oid),
}

struct ObjectHead {
    kind: u8,
    size: usize,
    base: Base,
}

impl ObjectHead {
    /// `None`: it goes on.
    fn read(bytes: &[u8]) -> Result<Option<Self>, Unreadable> {
        if bytes.len() > HEAD_BYTES_MAX {
            return Err(Unreadable);
        }
        let Some((&first, rest)) = bytes.split_first() else {
            return Ok(None);
        };
        let kind = first >> 4 & 7;
        let mut size = usize::from(first & 15);
        let (mut shift, mut more, mut at) = (4_u32, first & 0x80 != 0, 0);
        while more {
            let Some(byte) = rest.get(at) else {
                return Ok(None);
            };
            if shift > 53 {
                return Err(Unreadable);
            }
            size |= usize::from(byte & 0x7f) << shift;
            (shift, more, at) = (shift + 7, byte & 0x80 != 0, at + 1);
        }
        let rest = rest.get(at..).unwrap_or_default();
        let base = match kind {
            1..=4 => Base::None,
            OFFSET_DELTA => match distance(rest)? {
                Some(distance) => Base::Before(distance),
                None => return Ok(None),
            },
            NAMED_DELTA => match <[u8; 20]>::try_from(rest) {
                Ok(oid) => Base::Named(Oid(oid)),
                Err(_) => return Ok(None),
            },
            _ => return Err(Unreadable),
        };
        Ok(Some(Self { kind, size, base }))
    }
}

/// The number of an `OFS_DELTA`, each further byte of which stands for one more than it says.
fn distance(bytes: &[u8]) -> Result<Option<u64>, Unreadable> {
    let mut value = 0_u64;
    for (at, byte) in bytes.iter().enumerate() {
        if at > 7 {
            return Err(Unreadable);
        }
        value = value << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Ok(Some(value));
        }
        value += 1;
    }
    Ok(None)
}

/// What a delta makes of its base (gitformat-pack(5), *Deltified representation*).
fn applied(base: &[u8], delta: &[u8]) -> Option<Vec<u8>> {
    let mut delta = delta.iter().copied();
    let from = delta_size(&mut delta)?;
    let to = delta_size(&mut delta)?;
    if from != base.len() || to > COMMIT_BYTES_MAX {
        return None;
    }
    let mut out = Vec::with_capacity(to);
    while let Some(instruction) = delta.next() {
        if instruction & 0x80 != 0 {
            let start = delta_number(&mut delta, instruction, 4)?;
            let length = match delta_number(&mut delta, instruction >> 4 & 7, 3)? {
                0 => 0x1_0000,
                length => length,
            };
            out.extend_from_slice(base.get(start..start.checked_add(length)?)?);
        } else if instruction == 0 {
            return None;
        } else {
            for _ in 0..instruction {
                out.push(delta.next()?);
            }
        }
        if out.len() > to {
            return None;
        }
    }
    (out.len() == to).then_some(out)
}

/// The bytes of a number that `bits` says are there, the lowest first.
fn delta_number(delta: &mut impl Iterator<Item = u8>, bits: u8, count: u8) -> Option<usize> {
    let mut value = 0_usize;
    for place in (0..count).filter(|place| bits >> place & 1 == 1) {
        value |= usize::from(delta.next()?) << (8 * place);
    }
    Some(value)
}

fn delta_size(delta: &mut impl Iterator<Item = u8>) -> Option<usize> {
    let (mut size, mut shift) = (0_usize, 0_u32);
    loop {
        let byte = delta.next()?;
        if shift > 49 {
            return None;
        }
        size |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(size);
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests;
