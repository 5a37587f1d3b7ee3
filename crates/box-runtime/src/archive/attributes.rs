//! What is kept of a file besides its content: mode, owner, time, extended attributes, and what an
//! overlay marked on it.
//!
//! Attributes travel as `SCHILY.xattr.<name>` (star, GNU tar), an overlay's marks as records of our
//! own, because the attributes they are on disk (`trusted.overlay.*`, `user.overlay.*`) differ from
//! host to host and mean something to whoever mounts them.

use super::error::Offence;
use super::layout::Part;
use rustix::fd::AsFd;
use rustix::fs::{
    Gid, Mode, Stat, Timespec, Timestamps, Uid, XattrFlags, fchmod, fchown, fgetxattr, flistxattr,
    fsetxattr, futimens,
};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;

/// Highest id a box has.
const ID_MAX: u32 = 65_535;
/// Whose files are that belong to nobody of the box (passwd of every Linux).
const NOBODY: u32 = 65_534;
/// Most bytes of names one file's attributes have (xattr(7)).
const NAMES_BYTES_MAX: usize = 64 << 10;
/// Longest value (xattr(7)).
const VALUE_BYTES_MAX: usize = 64 << 10;
/// Most bytes of attributes of one file that travel.
const ALL_BYTES_MAX: usize = 512 << 10;
const XATTR: &[u8] = b"SCHILY.xattr.";
const MTIME: &[u8] = b"mtime";
const WHITEOUT: &[u8] = b"BOX.overlay.whiteout";
const OPAQUE: &[u8] = b"BOX.overlay.opaque";
const REDIRECT: &[u8] = b"BOX.overlay.redirect";
const ACLS: [&[u8]; 2] = [b"system.posix_acl_access", b"system.posix_acl_default"];
/// `PATH_MAX` without its zero byte (limits.h).
const REDIRECT_BYTES_MAX: usize = 4095;

/// A record of an extended header.
pub(super) type Record = (Vec<u8>, Vec<u8>);

/// Under which names an overlay keeps its marks (overlayfs.rst, *User xattr*).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverlayNames {
    Trusted,
    /// Mounted by an ordinary user.
    User,
}

impl OverlayNames {
    fn prefix(self) -> &'static [u8] {
        match self {
            Self::Trusted => b"trusted.overlay.",
            Self::User => b"user.overlay.",
        }
    }
}

/// What an overlay says of a file of its upper layer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Marks {
    /// The name is not in the layers below any more. Not an attribute on disk, but a device 0/0.
    pub(super) whiteout: bool,
    /// Nothing of the folder in the layers below is seen.
    pub(super) opaque: bool,
    /// What is below it is found there in the layers below.
    pub(super) redirect: Option<Vec<u8>>,
}

impl Marks {
    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<(), Offence> {
        match key {
            WHITEOUT if value == b"1" => self.whiteout = true,
            OPAQUE if value == b"1" => self.opaque = true,
            REDIRECT if leads_into_the_layers(value) => self.redirect = Some(value.to_vec()),
            _ => return Err(Offence::Attribute(crate::unpack::shown(key))),
        }
        Ok(())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attributes {
    pub(super) mode: u32,
    /// 0 to 65535.
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// Seconds since 1970, and the rest, 0 to 999,999,999.
    pub(super) mtime: (i64, u32),
    /// By name.
    pub(super) xattrs: Vec<Record>,
    pub(super) marks: Marks,
}

/// Whose the files of a tree are on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDisk {
    /// Whose they are in the box.
    Same,
    /// One user's, all of them, who is this one in the box: there is no other id.
    One(u32),
}

/// How files are given what is kept of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting {
    pub(super) owners: OnDisk,
    pub(super) overlay: OverlayNames,
}

/// How the files of a tree are read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    pub(super) owners: OnDisk,
    pub(super) part: Part,
    pub(super) overlay: OverlayNames,
}

/// What was read of a file.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) attributes: Attributes,
    /// Some of its attributes are too long to travel, or only mean something on this host.
    pub(super) left_out: bool,
}

impl Attributes {
    /// Of what is in an archive and in no box.
    pub(super) const fn fixed(mode: u32) -> Self {
        Self {
            mode,
            uid: 0,
            gid: 0,
            mtime: (0, 0),
            xattrs: Vec::new(),
            marks: Marks {
                whiteout: false,
                opaque: false,
                redirect: None,
            },
        }
    }

    /// Of something that has no attributes of its own.
    pub(super) fn plain(stat: &Stat, reading: Reading) -> Self {
        // Nanoseconds of a file are below 10^9 (stat(3type)).
        let nanoseconds = u32::try_from(stat.st_mtime_nsec).unwrap_or(0);
        Self {
            mode: stat.st_mode & 0o7777,
            uid: inside(stat.st_uid, reading.owners),
            gid: inside(stat.st_gid, reading.owners),
            mtime: (stat.st_mtime, nanoseconds),
            xattrs: Vec::new(),
            marks: Marks::default(),
        }
    }

    /// Of an open file or folder.
    pub(super) fn of(file: impl AsFd, stat: &Stat, reading: Reading) -> io::Result<Read> {
        let mut read = Read {
            attributes: Self::plain(stat, reading),
            left_out: false,
        };
        let mut bytes = 0;
        for name in names(&file)? {
            let Some(value) = value(&file, &name)? else {
                continue;
            };
            bytes += name.len() + value.len();
            if bytes > ALL_BYTES_MAX {
                read.left_out = true;
                break;
            }
            read.left_out |= !read.attributes.take(name, value, reading);
        }
        read.attributes.xattrs.sort();
        Ok(read)
    }

    /// Keeps an attribute; `false` when it means something and cannot travel.
    fn take(&mut self, name: Vec<u8>, value: Vec<u8>, reading: Reading) -> bool {
        if let Some(mark) = name.strip_prefix(reading.overlay.prefix()) {
            return reading.part != Part::Root || self.take_mark(mark, value);
        }
        if ACLS.contains(&name.as_slice()) {
            let known = is_access_list(&value);
            self.xattrs.extend(known.then_some((name, value)));
            return known;
        }
        // Overlays of ordinary users would take marks of their own for ours.
        let travels = name.starts_with(b"user.") && !name.starts_with(b"user.overlay.");
        if travels {
            self.xattrs.push((name, value));
        }
        travels
    }

    /// Other marks of an overlay are about this host's inodes and are made anew.
    fn take_mark(&mut self, mark: &[u8], value: Vec<u8>) -> bool {
        match mark {
            b"opaque" => self.marks.opaque = value == b"y",
            b"redirect" => self.marks.redirect = Some(value),
            // Content is in the layer below: it must not be taken for an empty file.
            b"metacopy" => return false,
            _ => {}
        }
        true
    }

    /// As records of an extended header, in one order.
    pub(super) fn records(&self) -> Vec<Record> {
        let mut records = Vec::new();
        let (seconds, nanoseconds) = self.mtime;
        if nanoseconds != 0 || !(0..1 << 33).contains(&seconds) {
            records.push((MTIME.to_vec(), decimal(seconds, nanoseconds).into_bytes()));
        }
        for (set, key) in [(self.marks.whiteout, WHITEOUT), (self.marks.opaque, OPAQUE)] {
            if set {
                records.push((key.to_vec(), b"1".to_vec()));
            }
        }
        if let Some(to) = &self.marks.redirect {
            records.push((REDIRECT.to_vec(), to.clone()));
        }
        for (name, value) in &self.xattrs {
            records.push(([XATTR, &escaped(name)].concat(), value.clone()));
        }
        records
    }

    /// Takes in records that came. Only what [`Attributes::of`] reads may come.
    pub(super) fn add(&mut self, records: &[Record], part: Part) -> Result<(), Offence> {
        for (key, value) in records {
            if key == MTIME {
                self.mtime = parsed(value).ok_or(Offence::Time)?;
            } else if let Some(name) = key.strip_prefix(XATTR) {
                self.xattrs.push(admitted(name, value)?);
            } else if part == Part::Root {
                self.marks.add(key, value)?;
            } else {
                return Err(Offence::Overlay);
            }
        }
        self.xattrs.sort();
        if self.xattrs.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(Offence::Twice);
        }
        Ok(())
    }

    /// Sets all of it: the owner first, since chown(2) takes set-id bits away; the time last.
    pub(super) fn set(&self, file: impl AsFd, setting: Setting) -> Result<(), Errno> {
        if let Some((uid, gid)) = self.owner(setting) {
            fchown(&file, Some(uid), Some(gid))?;
        }
        fchmod(&file, Mode::from_raw_mode(self.mode))?;
        let set = |name: &[u8], value: &[u8]| {
            fsetxattr(&file, OsStr::from_bytes(name), value, XattrFlags::empty())
        };
        for (name, value) in &self.xattrs {
            set(name, value)?;
        }
        if self.marks.opaque {
            set(&[setting.overlay.prefix(), b"opaque"].concat(), b"y")?;
        }
        if let Some(to) = &self.marks.redirect {
            set(&[setting.overlay.prefix(), b"redirect"].concat(), to)?;
        }
        futimens(&file, &self.times())
    }

    pub(super) fn owner(&self, setting: Setting) -> Option<(Uid, Gid)> {
        match setting.owners {
            OnDisk::Same => Some((Uid::from_raw(self.uid), Gid::from_raw(self.gid))),
            OnDisk::One(_) => None,
        }
    }

    pub(super) fn times(&self) -> Timestamps {
        let (seconds, nanoseconds) = self.mtime;
        let time = Timespec {
            tv_sec: seconds,
            tv_nsec: nanoseconds.into(),
        };
        Timestamps {
            last_access: time,
            last_modification: time,
        }
    }
}

/// The box's own id for one on disk.
fn inside(id: u32, owners: OnDisk) -> u32 {
    match owners {
        OnDisk::Same if id <= ID_MAX => id,
        OnDisk::Same => NOBODY,
        OnDisk::One(own) => own,
    }
}

fn names(file: &impl AsFd) -> io::Result<Vec<Vec<u8>>> {
    let mut list = vec![0; 4 << 10];
    let count = loop {
        match flistxattr(file, &mut list[..]) {
            Ok(count) => break count,
            Err(Errno::RANGE) if list.len() < NAMES_BYTES_MAX => list.resize(NAMES_BYTES_MAX, 0),
            // The file system has none.
            Err(Errno::OPNOTSUPP) => break 0,
            Err(errno) => return Err(errno.into()),
        }
    };
    let names = list[..count].split(|byte| *byte == 0);
    Ok(names
        .filter(|name| !name.is_empty())
        .map(<[u8]>::to_vec)
        .collect())
}

/// `None` when it is gone again, or not shown to us.
fn value(file: &impl AsFd, name: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let mut value = vec![0; 256];
    loop {
        match fgetxattr(file, OsStr::from_bytes(name), &mut value[..]) {
            Ok(count) => {
                value.truncate(count);
                return Ok(Some(value));
            }
            Err(Errno::RANGE) if value.len() < VALUE_BYTES_MAX => value.resize(VALUE_BYTES_MAX, 0),
            Err(Errno::NODATA | Errno::OPNOTSUPP) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// An attribute that may come.
fn admitted(escaped: &[u8], value: &[u8]) -> Result<Record, Offence> {
    let refused = || Offence::Attribute(crate::unpack::shown(escaped));
    let name = unescaped(escaped).ok_or_else(refused)?;
    let fits = name.len() <= 255 && !name.contains(&0) && value.len() <= VALUE_BYTES_MAX;
    if ACLS.contains(&name.as_slice()) {
        let known = is_access_list(value).then(|| (name, value.to_vec()));
        return known.ok_or(Offence::AccessList);
    }
    let travels =
        name.starts_with(b"user.") && name.len() > 5 && !name.starts_with(b"user.overlay.");
    if travels && fits {
        Ok((name, value.to_vec()))
    } else {
        Err(refused())
    }
}

/// Whether it is an access list, of ids a box has. `struct posix_acl_xattr_header` and
/// `posix_acl_xattr_entry` of the kernel: version 2, then tag, permissions and id of each entry.
fn is_access_list(list: &[u8]) -> bool {
    const USER: u16 = 0x02;
    const GROUP: u16 = 0x08;
    const ENTRY_BYTES: usize = 8;
    let Some(entries) = list.strip_prefix(&2_u32.to_le_bytes()) else {
        return false;
    };
    let (entries, rest) = entries.as_chunks::<ENTRY_BYTES>();
    let known = |[tag, tag_high, _, _, id @ ..]: &[u8; ENTRY_BYTES]| {
        let tag = u16::from_le_bytes([*tag, *tag_high]);
        u32::from_le_bytes(*id) <= ID_MAX || (tag != USER && tag != GROUP)
    };
    rest.is_empty() && entries.iter().all(known)
}

/// Either one name, or a path from the root of the layers; no way up, nothing empty.
fn leads_into_the_layers(to: &[u8]) -> bool {
    let fine = |part: &[u8]| !part.is_empty() && part != b"." && part != b"..";
    let known = !to.contains(&0) && to.len() <= REDIRECT_BYTES_MAX;
    known
        && match to.strip_prefix(b"/") {
            Some(path) => path.split(|byte| *byte == b'/').all(fine),
            None => fine(to) && !to.contains(&b'/'),
        }
}

/// `=` ends a key, so that names with it are written as GNU tar does.
fn escaped(name: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(name.len());
    for byte in name {
        match byte {
            b'%' => text.extend(b"%25"),
            b'=' => text.extend(b"%3D"),
            plain => text.push(*plain),
        }
    }
    text
}

fn unescaped(mut text: &[u8]) -> Option<Vec<u8>> {
    let mut name = Vec::with_capacity(text.len());
    while let Some((first, rest)) = text.split_first() {
        let byte;
        (byte, text) = match (first, rest) {
            (b'%', [b'2', b'5', rest @ ..]) => (b'%', rest),
            (b'%', [b'3', b'D', rest @ ..]) => (b'=', rest),
            (b'%', _) => return None,
            (plain, rest) => (*plain, rest),
        };
        name.push(byte);
    }
    Some(name)
}

/// pax's decimal seconds; before 1970 the whole is negative.
fn decimal(seconds: i64, nanoseconds: u32) -> String {
    let total = i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
    let (whole, rest) = (
        total.unsigned_abs() / 1_000_000_000,
        total.unsigned_abs() % 1_000_000_000,
    );
    let sign = if total < 0 { "-" } else { "" };
    let text = format!("{sign}{whole}.{rest:09}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn parsed(text: &[u8]) -> Option<(i64, u32)> {
    let text = std::str::from_utf8(text).ok()?;
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, rest) = digits.split_once('.').unwrap_or((digits, ""));
    let plain = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 12 || rest.len() > 9 || !plain(whole) || !plain(rest) {
        return None;
    }
    let whole: i128 = whole.parse().ok()?;
    let rest: i128 = format!("{rest:0<9}").parse().ok()?;
    let total = whole * 1_000_000_000 + rest;
    let total = if negative { -total } else { total };
    let seconds = i64::try_from(total.div_euclid(1_000_000_000)).ok()?;
    let nanoseconds = u32::try_from(total.rem_euclid(1_000_000_000)).ok()?;
    Some((seconds, nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_their_nanoseconds_also_before_1970() {
        for time in [
            (0, 0),
            (1_700_000_000, 123_456_789),
            (5, 500_000_000),
            (-1, 999_999_999),
            (-7, 0),
            (1 << 34, 1),
        ] {
            let text = decimal(time.0, time.1);
            assert_eq!(parsed(text.as_bytes()), Some(time), "{text}");
        }
        assert_eq!(decimal(-1, 500_000_000), "-0.5");
        for bad in [
            "",
            "-",
            "x",
            "1.2.3",
            "+1",
            "1.0000000001",
            "9999999999999",
            " 1",
        ] {
            assert_eq!(parsed(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn names_of_attributes_come_through() {
        for name in [&b"user.a=b"[..], b"user.100%", b"user.%3D", b"user.\xff\n"] {
            assert_eq!(unescaped(&escaped(name)).as_deref(), Some(name));
        }
        assert_eq!(unescaped(b"user.%41"), None);
    }

    #[test]
    fn redirects_lead_into_the_layers_or_nowhere() {
        for fine in ["name", "/a/b", "/a"] {
            assert!(leads_into_the_layers(fine.as_bytes()), "{fine}");
        }
        for bad in [
            "", ".", "..", "/", "//a", "/a/", "/a/../b", "a/b", "../a", "/..",
        ] {
            assert!(!leads_into_the_layers(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn access_lists_have_ids_of_the_box_only() {
        let entry = |tag: u16, id: u32| {
            let mut entry = [tag.to_le_bytes(), 6_u16.to_le_bytes()].concat();
            entry.extend(id.to_le_bytes());
            entry
        };
        let list = |user: u32| {
            let rest = [entry(1, u32::MAX), entry(2, user), entry(8, user)].concat();
            [2_u32.to_le_bytes().to_vec(), rest].concat()
        };
        assert!(is_access_list(&list(1000)));
        for bad in [&list(70_000), &list(1)[..7], b"\x01\0\0\0", b""] {
            assert!(!is_access_list(bad), "{bad:?}");
        }
    }
}
