//! Files a box may change itself: a list of certificates that is added to, a store that is copied.
//! Called with the box's root as `/`; what the box has of its own stays. A full disk is no reason not to start, so that it leaves things as they were.

use super::within;
use rustix::fd::{AsRawFd as _, OwnedFd};
use rustix::fs::{self, AtFlags, Mode, OFlags};
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::fchown;
use std::path::Path;

/// Largest list read; one that is longer is its owner's own affair and left alone.
const LIST_BYTES_MAX: u64 = 4 << 20;
const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// Adds to the list `target` what it lacks of the certificates in `tree`, which hangs nowhere.
pub(super) fn add(tree: &OwnedFd, target: &str) {
    let list = read(open(target, OFlags::RDONLY));
    let ours = read(content(tree));
    let (Some(list), Some(ours)) = (list, ours) else {
        return;
    };
    let addition = missing(&list.text, &ours.text);
    if addition.is_empty() {
        return;
    }
    let Ok(mut file) = open(target, OFlags::WRONLY | OFlags::APPEND) else {
        return;
    };
    if file.write_all(addition.as_bytes()).is_err() {
        // Half a certificate would spoil the list.
        drop(file.set_len(list.bytes));
    }
}

/// Copies `tree` to where nothing is yet, with the folders above it, for the user `owner` alone; for
/// whoever calls when that is nobody else.
pub(super) fn copy(tree: &OwnedFd, target: &Path, owner: Option<u32>) -> io::Result<()> {
    let (Some(above), Some(name)) = (target.parent(), target.file_name()) else {
        return Ok(());
    };
    if within::is_there(target) {
        return Ok(());
    }
    let above = within::folder(above, 0o700, owner)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mut new = File::from(fs::openat(&above, name, flags, Mode::from_raw_mode(0o600))?);
    let copied = io::copy(&mut content(tree)?.take(LIST_BYTES_MAX), &mut new)
        .and_then(|_| fchown(&new, owner, owner));
    if copied.is_err() {
        let _gone = fs::unlinkat(&above, name, AtFlags::empty());
    }
    copied
}

/// What a mount that hangs nowhere holds, if it is one file.
fn content(tree: &OwnedFd) -> io::Result<File> {
    File::open(format!("/proc/self/fd/{}", tree.as_raw_fd()))
}

struct List {
    text: String,
    bytes: u64,
}

/// A fifo in its place must not hold the start up.
fn open(path: &str, access: OFlags) -> io::Result<File> {
    let flags = access | OFlags::NONBLOCK | OFlags::NOCTTY;
    Ok(File::from(within::open(Path::new(path), flags, 0)?))
}

/// A list as text; `None` if there is no such file, or none that could be added to.
fn read(file: io::Result<File>) -> Option<List> {
    let file = file.ok()?;
    let about = file.metadata().ok()?;
    if !about.is_file() || about.len() > LIST_BYTES_MAX {
        return None;
    }
    let mut content = Vec::new();
    file.take(LIST_BYTES_MAX).read_to_end(&mut content).ok()?;
    Some(List {
        bytes: content.len() as u64,
        text: String::from_utf8_lossy(&content).into_owned(),
    })
}

/// The blocks of `ours` that `list` does not have, as text that can be put behind it.
fn missing(list: &str, ours: &str) -> String {
    let there: HashSet<String> = blocks(list).map(body).collect();
    let mut text = String::new();
    for block in blocks(ours).filter(|block| !there.contains(&body(block))) {
        if text.is_empty() && !list.is_empty() && !list.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(BEGIN);
        text.push_str(block);
        text.push_str(END);
        text.push('\n');
    }
    text
}

/// What stands between the lines of each certificate (RFC 7468 §5.1).
fn blocks(text: &str) -> impl Iterator<Item = &str> {
    text.split(BEGIN)
        .skip(1)
        .filter_map(|rest| Some(rest.split_once(END)?.0))
}

/// Line breaks are nobody's difference.
fn body(block: &str) -> String {
    block.split_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn block(body: &str) -> String {
        format!("{BEGIN}\n{body}\n{END}\n")
    }

    #[test]
    fn only_what_is_missing_is_added_and_only_once() {
        let folder = tempfile::tempdir().unwrap();
        let (list, ours) = (folder.path().join("list"), folder.path().join("ours"));
        // The list is wrapped differently, has a comment and lacks the last line's end.
        let before = format!(
            "# mine\n{}{}",
            block("QUJD\nREVG"),
            block("VVNFUg==").trim_end()
        );
        fs::write(&list, &before).unwrap();
        fs::write(&ours, block("QUJDREVG") + &block("Qk9YRVM=")).unwrap();
        let tree = OwnedFd::from(File::open(&ours).unwrap());
        for _ in 0..2 {
            add(&tree, list.to_str().unwrap());
            let expected = format!("{before}\n{}", block("Qk9YRVM="));
            assert_eq!(fs::read_to_string(&list).unwrap(), expected);
        }
    }

    #[test]
    fn what_is_no_list_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let ours = folder.path().join("ours");
        fs::write(&ours, block("QUJD")).unwrap();
        let tree = OwnedFd::from(File::open(&ours).unwrap());
        let fifo = folder.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, Mode::RUSR).unwrap();
        let absent = folder.path().join("absent");
        for path in [&fifo, &absent, &folder.path().to_owned()] {
            add(&tree, path.to_str().unwrap());
        }
        assert!(!absent.exists());
        // The control: an empty list is one.
        let empty = folder.path().join("empty");
        fs::write(&empty, "").unwrap();
        add(&tree, empty.to_str().unwrap());
        assert_eq!(fs::read_to_string(&empty).unwrap(), block("QUJD"));
    }

    #[test]
    fn a_copy_is_made_once_and_is_its_owners_alone() {
        use std::os::unix::fs::MetadataExt as _;
        let folder = tempfile::tempdir().unwrap();
        let ours = folder.path().join("ours");
        fs::write(&ours, "one").unwrap();
        let tree = OwnedFd::from(File::open(&ours).unwrap());
        let target = folder.path().join("a/b/store");
        copy(&tree, &target, None).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "one");
        assert_eq!(fs::metadata(&target).unwrap().mode() & 0o777, 0o600);
        let above = fs::metadata(folder.path().join("a")).unwrap();
        assert_eq!(above.mode() & 0o777, 0o700);
        fs::write(&target, "changed by its user").unwrap();
        copy(&tree, &target, None).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "changed by its user");
    }
}
