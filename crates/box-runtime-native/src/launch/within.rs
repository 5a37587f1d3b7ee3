//! Paths of a box as the launcher may use them, with the box's root as `/`. Whatever the box left
//! there: a link leads where it would in the box and nowhere else. The links of `/proc/self/fd` lead
//! to what the launcher holds open, so that none of their kind is followed (openat2(2),
//! `RESOLVE_NO_MAGICLINKS`).

use rustix::fd::OwnedFd;
use rustix::fs::{self, AtFlags, CWD, Gid, Mode, OFlags, ResolveFlags, Uid};
use rustix::io::Errno;
use std::path::Path;

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const RULES: ResolveFlags = ResolveFlags::IN_ROOT.union(ResolveFlags::NO_MAGICLINKS);

/// Opens what `path` names, or makes a file of it where the flags say so.
pub(super) fn open(path: &Path, flags: OFlags, mode: u32) -> Result<OwnedFd, Errno> {
    let root = fs::openat(CWD, "/", FOLDER, Mode::empty())?;
    let flags = flags | OFlags::CLOEXEC;
    fs::openat2(&root, path, flags, Mode::from_raw_mode(mode), RULES)
}

/// Opens a folder, and makes those that are not there yet, which belong to `owner`.
pub(super) fn folder(path: &Path, mode: u32, owner: Option<u32>) -> Result<OwnedFd, Errno> {
    let mut missing = Vec::new();
    let mut there = Err(Errno::NOENT);
    for above in path.ancestors() {
        there = open(above, FOLDER, 0);
        if there.as_ref().err() != Some(&Errno::NOENT) {
            break;
        }
        missing.extend(above.file_name());
    }
    let mut folder = there?;
    for name in missing.into_iter().rev() {
        fs::mkdirat(&folder, name, Mode::from_raw_mode(mode))?;
        let (user, group) = (owner.map(Uid::from_raw), owner.map(Gid::from_raw));
        fs::chownat(&folder, name, user, group, AtFlags::SYMLINK_NOFOLLOW)?;
        let rules = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        folder = fs::openat2(&folder, name, FOLDER, Mode::empty(), rules)?;
    }
    Ok(folder)
}

/// Whether there is something of this name, be it a link that leads nowhere.
pub(super) fn is_there(path: &Path) -> bool {
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
        return true;
    };
    let found = open(above, FOLDER, 0)
        .and_then(|above| fs::statat(&above, name, AtFlags::SYMLINK_NOFOLLOW));
    // What cannot be looked at is left alone.
    found.err() != Some(Errno::NOENT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_into_what_is_held_open_are_not_followed() {
        let (outside, inside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(outside.path().join("file"), "theirs").unwrap();
        let held = std::fs::File::open(outside.path()).unwrap();
        let magic = format!("/proc/self/fd/{}", held.as_raw_fd());
        symlink(&magic, inside.path().join("magic")).unwrap();
        symlink(outside.path(), inside.path().join("plain")).unwrap();
        let write = OFlags::WRONLY | OFlags::CREATE;
        for way in ["magic/file", "magic/new"] {
            let path = inside.path().join(way);
            assert_eq!(open(&path, write, 0o600).err(), Some(Errno::LOOP), "{way}");
        }
        let above = inside.path().join("magic/a/b");
        assert_eq!(folder(&above, 0o700, None).err(), Some(Errno::LOOP));
        assert!(is_there(&inside.path().join("magic/new")), "left alone");
        // The controls: a link of the ordinary kind is followed, and the magic one would be.
        open(&inside.path().join("plain/new"), write, 0o600).unwrap();
        folder(&inside.path().join("plain/a/b"), 0o700, None).unwrap();
        assert!(outside.path().join("a/b").is_dir());
        assert!(inside.path().join("magic/new").exists());
    }

    #[test]
    fn folders_are_made_where_there_are_none_and_what_is_there_is_told() {
        let place = tempfile::tempdir().unwrap();
        let below = place.path().join("a/b");
        assert!(!is_there(&place.path().join("a")));
        folder(&below, 0o700, None).unwrap();
        folder(&below, 0o700, None).unwrap();
        assert!(is_there(&below));
        symlink("nowhere", place.path().join("link")).unwrap();
        assert!(is_there(&place.path().join("link")));
        assert!(folder(&place.path().join("link/c"), 0o700, None).is_err());
    }
}
