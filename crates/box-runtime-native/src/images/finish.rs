//! The last step: the mount points a read-only root needs, and the agent's entry in its user list.
//!
//! The tree may be hostile, its `/etc` a link. Paths are resolved with `RESOLVE_IN_ROOT`
//! (openat2(2)): a link in it leads where it would lead in the box, never out of the tree.

use super::error::ImageError;
use crate::rootless::Privileges;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, fchmod, fchown, mkdirat, openat, openat2,
    readlinkat, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{BorrowedFd, OwnedFd};

/// uid and gid of the agent in a `locked` box (decision D2).
const AGENT_ID: u32 = 1020;
/// Largest user list read, bytes.
const LIST_BYTES_MAX: u64 = 1 << 20;

/// Folders every box needs, with their modes.
const FOLDERS: [(&str, u32); 12] = [
    ("proc", 0o755),
    ("sys", 0o755),
    ("dev", 0o755),
    ("run", 0o755),
    ("tmp", 0o1777),
    ("root", 0o700),
    ("workspace", 0o755),
    ("home/agent", 0o755),
    ("opt/box/agents", 0o755),
    ("opt/box/bin", 0o755),
    ("etc/ssl/certs", 0o755),
    ("var/tmp", 0o1777),
];
/// Files that are empty here and mounted over in a box. The machine id must not be shared (D15).
const EMPTY: [(&str, &str); 4] = [
    ("etc", "resolv.conf"),
    ("etc", "hosts"),
    ("etc", "hostname"),
    ("etc", "machine-id"),
];
/// Mounted over as well, but worth having when it is not.
const CA_BUNDLE: (&str, &str) = ("etc/ssl/certs", "ca-certificates.crt");
/// Where other systems keep the same list, first those the others lead to (Fedora and its kin, SUSE,
/// Arch, Alpine). One of them is what the name above leads to, so that whatever is added to it in a
/// `root` box is seen under both.
const OTHER_BUNDLES: [&str; 5] = [
    "etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "etc/pki/tls/certs/ca-bundle.crt",
    "var/lib/ca-certificates/ca-bundle.pem",
    "etc/ca-certificates/extracted/tls-ca-bundle.pem",
    "etc/ssl/cert.pem",
];

/// Where there is one id, apt has nobody else to download as (apt.conf(5)).
const APT_STAYS_ROOT: (&str, &str, &[u8]) = (
    "etc/apt/apt.conf.d",
    "90one-id",
    b"APT::Sandbox::User \"root\";\n",
);

pub(super) fn finish(
    image: &str,
    root: BorrowedFd<'_>,
    privileges: Privileges,
) -> Result<(), ImageError> {
    let tree = Tree { root, privileges };
    let unfit = |path: &str, error: Errno| {
        ImageError::unfit(image, format!("`/{path}` cannot be made: {error}"))
    };
    // Tars are often made of a folder nobody else may enter; a box's user has to.
    fchmod(root, Mode::from_raw_mode(0o755)).map_err(|error| unfit("", error))?;
    for (path, mode) in FOLDERS {
        tree.folder(path, mode)
            .map_err(|error| unfit(path, error))?;
    }
    for (folder, name) in EMPTY {
        tree.write(folder, name, b"")
            .map_err(|error| unfit(name, error))?;
    }
    tree.bundle().map_err(|error| unfit(CA_BUNDLE.1, error))?;
    if !privileges.has_ranges() {
        let (folder, name, text) = APT_STAYS_ROOT;
        tree.write_into(folder, name, text)
            .map_err(|error| unfit(name, error))?;
    }
    tree.work_link().map_err(|error| unfit("work", error))?;
    tree.agent().map_err(|error| unfit("etc/passwd", error))
}

#[derive(Debug, Clone, Copy)]
struct Tree<'root> {
    root: BorrowedFd<'root>,
    privileges: Privileges,
}

impl Tree<'_> {
    fn open(self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        openat2(
            self.root,
            path,
            flags | OFlags::CLOEXEC,
            Mode::empty(),
            resolve,
        )
    }

    /// A folder, made with those above it when it is not there. One that is there stays as it is.
    fn folder(self, path: &str, mode: u32) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        match self.open(path, flags) {
            Err(Errno::NOENT) => {}
            opened => return opened,
        }
        let (above, name) = path.rsplit_once('/').unwrap_or((".", path));
        let above = self.folder(above, 0o755)?;
        mkdirat(&above, name, Mode::RWXU)?;
        let folder = self.open(path, flags)?;
        fchmod(&folder, Mode::from_raw_mode(mode))?;
        Ok(folder)
    }

    /// A new file in the place of whatever file or link had the name.
    fn write(self, folder: &str, name: &str, content: &[u8]) -> Result<(), Errno> {
        let folder = self.folder(folder, 0o755)?;
        match unlinkat(&folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error),
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = openat(&folder, name, flags, Mode::RUSR | Mode::WUSR)?;
        let (uid, gid) = self.privileges.on_disk(0);
        fchown(&file, Some(uid), Some(gid))?;
        fchmod(&file, Mode::from_raw_mode(0o644))?;
        let written = File::from(file).write_all(content);
        written.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }

    /// As [`Self::write`], where the folder is there; else there is nobody to read the file.
    fn write_into(self, folder: &str, name: &str, content: &[u8]) -> Result<(), Errno> {
        match self.open(folder, OFlags::RDONLY | OFlags::DIRECTORY) {
            Err(Errno::NOENT) => Ok(()),
            opened => opened.and_then(|_| self.write(folder, name, content)),
        }
    }

    /// A file's text; `None` when there is none, or a link that leads nowhere.
    fn read(self, folder: &str, name: &str) -> Result<Option<String>, Errno> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = match self.open(&format!("{folder}/{name}"), flags) {
            Err(Errno::NOENT) => return Ok(None),
            opened => File::from(opened?),
        };
        let regular = file.metadata().is_ok_and(|found| found.is_file());
        let mut text = Vec::new();
        let read = file.take(LIST_BYTES_MAX).read_to_end(&mut text);
        if !regular || read.is_err() {
            return Err(Errno::INVAL);
        }
        Ok(Some(String::from_utf8_lossy(&text).into_owned()))
    }

    /// A list of certificates under the name every box has it by.
    fn bundle(self) -> Result<(), Errno> {
        let (folder, name) = CA_BUNDLE;
        if self.read(folder, name)?.is_some() {
            return Ok(());
        }
        let there = |path: &&str| {
            let (folder, name) = path.rsplit_once('/').unwrap_or((".", path));
            matches!(self.read(folder, name), Ok(Some(list)) if !list.is_empty())
        };
        let Some(other) = OTHER_BUNDLES.into_iter().find(there) else {
            return self.write(folder, name, b"");
        };
        let folder = self.folder(folder, 0o755)?;
        match unlinkat(&folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error),
        }
        symlinkat(format!("/{other}"), &folder, name)
    }

    /// `/work` is the same as `/workspace` (decision D3), unless the image uses the name itself.
    fn work_link(self) -> Result<(), Errno> {
        let top = self.open(".", OFlags::RDONLY | OFlags::DIRECTORY)?;
        if readlinkat(&top, "work", Vec::new()).is_ok() {
            unlinkat(&top, "work", AtFlags::empty())?;
        } else if let Ok(there) = statat(&top, "work", AtFlags::SYMLINK_NOFOLLOW) {
            let folder = FileType::from_raw_mode(there.st_mode) == FileType::Directory;
            if !folder || unlinkat(&top, "work", AtFlags::REMOVEDIR).is_err() {
                return Ok(());
            }
        }
        symlinkat("/workspace", &top, "work")
    }

    fn agent(self) -> Result<(), Errno> {
        let shell = ["bash", "sh"]
            .into_iter()
            .find(|name| self.open(&format!("bin/{name}"), OFlags::PATH).is_ok())
            .unwrap_or("sh");
        let user = format!("agent:x:{AGENT_ID}:{AGENT_ID}:agent:/home/agent:/bin/{shell}");
        let root = format!("root:x:0:0:root:/root:/bin/{shell}");
        let list = self.read("etc", "passwd")?.unwrap_or(root);
        self.write("etc", "passwd", with_entry(&list, &user).as_bytes())?;
        let list = self
            .read("etc", "group")?
            .unwrap_or_else(|| "root:x:0:".to_owned());
        self.write(
            "etc",
            "group",
            with_entry(&list, &format!("agent:x:{AGENT_ID}:")).as_bytes(),
        )
    }
}

/// A user or group list with the agent in it, first among those of its number so that look-ups by
/// number find it, and alone under its name.
fn with_entry(list: &str, entry: &str) -> String {
    let number = |line: &str| line.split(':').nth(2) == Some("1020");
    let mut lines: Vec<&str> = list
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("agent:"))
        .collect();
    let place = lines
        .iter()
        .position(|line| number(line))
        .unwrap_or(lines.len());
    lines.insert(place, entry);
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests;
