//! What makes a box another than the one its files came from (B11, B28).
//!
//! `/etc/machine-id` is not in a box's files: it is shown to the box from outside, made of its id,
//! so that no clone, restore or import can bring another's. What a program noted of it in the
//! writable root is made to follow it.

use box_api::BoxId;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, openat2, statat, symlinkat, unlinkat};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::io;
use std::path::Path;

/// D-Bus keeps a copy of its own where it was installed without the link (dbus-uuidgen(1)).
const DBUS: &str = "var/lib/dbus";
const NAME: &str = "machine-id";

/// 32 hexadecimal digits, as machine-id(5) wants them: a version 4 UUID. The same for the life of
/// a box, and no other's.
pub(crate) fn machine_id(id: &BoxId) -> String {
    let digest = Sha256::digest(format!("machine-id of box {id}"));
    let mut bytes: [u8; 16] = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    bytes[6] = bytes[6] & 0x0F | 0x40;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Makes what the changes to a root hold of another box's identity follow the new one.
///
/// # Errors
/// What the kernel says; no copy there is no error.
pub(crate) fn forget(upper: &Path) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let upper = openat2(CWD, upper, flags, Mode::empty(), ResolveFlags::empty())?;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let folder = match openat2(&upper, DBUS, flags, Mode::empty(), resolve) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
        folder => folder?,
    };
    match statat(&folder, NAME, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(()),
        stat if !rustix::fs::FileType::from_raw_mode(stat?.st_mode).is_file() => return Ok(()),
        _ => {}
    }
    unlinkat(&folder, NAME, AtFlags::empty())?;
    Ok(symlinkat("/etc/machine-id", &folder, NAME)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_box_has_a_machine_id_of_its_own_for_good() {
        let (one, other) = (BoxId::from_random([1; 10]), BoxId::from_random([2; 10]));
        let id = machine_id(&one);
        assert_eq!(id.len(), 32);
        assert!(id.chars().all(|c| c.is_ascii_hexdigit()));
        assert_eq!(id, machine_id(&one));
        assert_ne!(id, machine_id(&other));
    }

    #[test]
    fn a_copy_of_the_machine_id_becomes_a_link_and_nothing_outside_is_touched() {
        let place = tempfile::tempdir().unwrap();
        let (upper, outside) = (place.path().join("upper"), place.path().join("outside"));
        std::fs::create_dir_all(upper.join("var/lib/dbus")).unwrap();
        std::fs::create_dir_all(outside.join("dbus")).unwrap();
        std::fs::write(upper.join("var/lib/dbus/machine-id"), "of another\n").unwrap();
        std::fs::write(outside.join("dbus/machine-id"), "kept\n").unwrap();
        forget(&upper).unwrap();
        let link = std::fs::read_link(upper.join("var/lib/dbus/machine-id")).unwrap();
        assert_eq!(link, Path::new("/etc/machine-id"));
        forget(&upper).unwrap();
        std::fs::remove_dir_all(upper.join("var/lib")).unwrap();
        std::os::unix::fs::symlink(&outside, upper.join("var/lib")).unwrap();
        forget(&upper).unwrap();
        assert_eq!(
            std::fs::read(outside.join("dbus/machine-id")).unwrap(),
            b"kept\n"
        );
    }
}
