//! Trees to be compared.

use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Everything that is kept of every thing in a tree, one line each.
pub(super) fn look(top: &Path) -> BTreeMap<PathBuf, String> {
    let mut seen = BTreeMap::new();
    let mut first_names = BTreeMap::new();
    let mut rest = vec![top.to_owned()];
    while let Some(path) = rest.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        let kind = meta.file_type();
        let name = path.strip_prefix(top).unwrap().to_owned();
        let mut line = format!(
            "{:o} {}:{} {}.{:09}",
            meta.mode(),
            meta.uid(),
            meta.gid(),
            meta.mtime(),
            meta.mtime_nsec()
        );
        if kind.is_symlink() {
            write!(line, " -> {:?}", fs::read_link(&path).unwrap()).unwrap();
        } else if kind.is_file() {
            let content = fs::read(&path).unwrap();
            let sum: u64 = content
                .iter()
                .fold(14_695_981_039_346_656_037, |sum, byte| {
                    (sum ^ u64::from(*byte)).wrapping_mul(1_099_511_628_211)
                });
            write!(line, " {} bytes {sum:x} {}", content.len(), xattrs(&path)).unwrap();
        } else if kind.is_dir() {
            write!(line, " {}", xattrs(&path)).unwrap();
            rest.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        } else if kind.is_char_device() {
            write!(line, " device {:x}", meta.rdev()).unwrap();
        }
        if kind.is_file() && meta.nlink() > 1 {
            // In one order, whoever comes first.
            first_names
                .entry(meta.ino())
                .or_insert_with(Vec::new)
                .push(name.clone());
        }
        seen.insert(name, line);
    }
    for mut names in first_names.into_values() {
        names.sort();
        for name in &names {
            write!(seen.get_mut(name).unwrap(), " = {names:?}").unwrap();
        }
    }
    seen
}

fn xattrs(path: &Path) -> String {
    let file = File::open(path).unwrap();
    let mut names = vec![0; 65_536];
    let count = flistxattr(&file, &mut names[..]).unwrap();
    let mut lines: Vec<String> = names[..count]
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| {
            let mut value = vec![0; 65_536];
            let count = fgetxattr(&file, OsStr::from_bytes(name), &mut value[..]).unwrap();
            format!("{:?}={:?}", String::from_utf8_lossy(name), &value[..count])
        })
        .collect();
    lines.sort();
    lines.join(" ")
}

pub(super) fn set(path: &Path, name: &str, value: &[u8]) {
    fsetxattr(File::open(path).unwrap(), name, value, XattrFlags::empty()).unwrap();
}
