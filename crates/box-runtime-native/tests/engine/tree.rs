//! What a tree is, to the last attribute, told by code that shares nothing with what copies it.

use rustix::fs::{lgetxattr, llistxattr};
use std::collections::{BTreeMap, HashMap};
use std::ffi::CStr;
use std::fmt::Write as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Every name below the top, the top included, with all that is to be kept of it. The overlay's
/// identity of a layer, which the kernel makes up, is left out.
pub(crate) fn described(top: &Path) -> BTreeMap<PathBuf, String> {
    let mut seen = BTreeMap::new();
    let mut first_names = HashMap::new();
    describe(top, top, &mut first_names, &mut seen);
    seen
}

/// The three folders of a box or of a snapshot.
pub(crate) fn of_box(folder: &Path) -> BTreeMap<PathBuf, String> {
    let parts = ["workspace", "home", "upper"].map(|part| (part, described(&folder.join(part))));
    let mut all = BTreeMap::new();
    for (part, tree) in parts {
        for (path, what) in tree {
            all.insert(Path::new(part).join(path), what);
        }
    }
    all
}

/// Panics with what differs.
pub(crate) fn assert_same(
    found: &BTreeMap<PathBuf, String>,
    expected: &BTreeMap<PathBuf, String>,
    what: &str,
) {
    let paths = found.keys().chain(expected.keys());
    let differ = paths.filter(|path| found.get(*path) != expected.get(*path));
    let lines: Vec<String> = differ
        .take(8)
        .map(|path| {
            let (found, expected) = (found.get(path), expected.get(path));
            format!(
                "{}\n  found    {found:?}\n  expected {expected:?}",
                path.display()
            )
        })
        .collect();
    assert!(lines.is_empty(), "{what}:\n{}", lines.join("\n"));
}

fn describe(
    top: &Path,
    path: &Path,
    first_names: &mut HashMap<u64, PathBuf>,
    seen: &mut BTreeMap<PathBuf, String>,
) {
    let about = std::fs::symlink_metadata(path).unwrap();
    let kind = about.file_type();
    let below = path.strip_prefix(top).unwrap().to_path_buf();
    let mut what = format!(
        "{:o} {}:{} {}.{:09}",
        about.mode(),
        about.uid(),
        about.gid(),
        about.mtime(),
        about.mtime_nsec()
    );
    if !kind.is_dir() {
        let first = first_names.entry(about.ino());
        let first = first.or_insert_with(|| below.clone());
        // Not how many there are: an overlay keeps a name of what hides others in its own folder.
        let _ = write!(what, " first name {}", first.display());
    }
    if kind.is_file() {
        let _ = write!(what, " {} bytes, sum {:x}", about.len(), sum(path));
    } else if kind.is_symlink() {
        let _ = write!(what, " -> {}", std::fs::read_link(path).unwrap().display());
    } else if kind.is_char_device() || kind.is_block_device() {
        let _ = write!(what, " device {}", about.rdev());
    }
    what += &xattrs(path);
    seen.insert(below, what);
    if kind.is_dir() {
        let mut names: Vec<PathBuf> = std::fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        names.sort();
        for name in names {
            describe(top, &name, first_names, seen);
        }
    }
}

/// FNV-1a; nobody attacks a test.
fn sum(path: &Path) -> u64 {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    std::fs::read(path)
        .unwrap()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, step)
}

fn xattrs(path: &Path) -> String {
    let mut names = vec![0; 64 << 10];
    let length = llistxattr(path, names.as_mut_slice()).unwrap();
    let mut found: Vec<String> = names[..length]
        .split_inclusive(|byte| *byte == 0)
        .map(|name| CStr::from_bytes_with_nul(name).unwrap())
        .filter(|name| *name != c"trusted.overlay.uuid")
        .map(|name| {
            let mut value = vec![0; 64 << 10];
            let length = lgetxattr(path, name, value.as_mut_slice()).unwrap();
            format!(" {}={:?}", name.to_str().unwrap(), &value[..length])
        })
        .collect();
    found.sort();
    found.concat()
}
