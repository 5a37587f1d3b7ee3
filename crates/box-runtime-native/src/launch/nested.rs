//! What a box needs besides that may hold containers (D7).
//!
//! `/proc` of a box is masked, and the kernel mounts no other one below it (`mount_too_revealing`), as it
//! mounts no `/sys`. So containers are shown the box's own `/proc`, and share its network, which is what
//! leads out; the box is the boundary. The settings that say so are written for podman and buildah where
//! nobody has written any.

use super::within;
use crate::rootless::Privileges;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

/// Kinds of namespaces a box may make, and how many of each there may be at once. The kernel counts those
/// of all below (`namespaces(7)`, "The /proc/sys/user directory"), and nobody in the box may raise it. One
/// of a network costs the kernel most.
const NAMESPACES_MAX: [(&str, u32); 6] = [
    ("user", 256),
    ("mnt", 256),
    ("pid", 256),
    ("ipc", 256),
    ("uts", 256),
    ("net", 64),
];

/// Parts of the scratch file system: `/sys` with nothing in it but the place of the cgroups, which
/// runtimes look at whether they use it or not.
pub(super) const SYS: [&str; 3] = ["sys", "sys/fs", "sys/fs/cgroup"];

/// Who may use which ids for containers (subuid(5)).
const SUBORDINATE_IDS: [&str; 2] = ["/etc/subuid", "/etc/subgid"];
/// A list of ids longer than this is its owner's own affair.
const LIST_BYTES_MAX: u64 = 64 << 10;

/// Settings of podman and buildah: where they are, and what stands there.
const SETTINGS: [(&str, &str); 2] = [
    (
        "/etc/containers/containers.conf.d/50-box.conf",
        CONTAINERS_CONF,
    ),
    ("/etc/containers/storage.conf", STORAGE_CONF),
];
/// containers.conf(5).
const CONTAINERS_CONF: &str = "\
# Written by box when this box was first allowed to hold containers. It is yours to change.
# Containers share the network of the box and are shown its processes: the box is the boundary.
[containers]
netns = \"host\"
cgroupns = \"host\"
cgroups = \"disabled\"
keyring = false
default_sysctls = []
volumes = [\"/proc:/proc\"]

[engine]
cgroup_manager = \"cgroupfs\"
events_logger = \"file\"
";

/// containers-storage.conf(5). The root of a box is an overlay, on which there can be no other; its home is
/// none.
const STORAGE_CONF: &str = "\
# Written by box when this box was first allowed to hold containers. It is yours to change.
[storage]
driver = \"overlay\"
runroot = \"/run/containers/storage\"
graphroot = \"/root/.local/share/containers/storage\"
";

/// Belongs to the box's user namespace, whose root with all its capabilities this process still is.
pub(super) fn limit_namespaces(proc: &OwnedFd) -> Result<(), Errno> {
    for (kind, most) in NAMESPACES_MAX {
        let path = format!("sys/user/max_{kind}_namespaces");
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let setting = rustix::fs::openat(proc, path, flags, Mode::empty())?;
        rustix::io::write(&setting, most.to_string().as_bytes())?;
    }
    Ok(())
}

/// Called with the box's root as `/`, which it may write to. What is there already stays; a full disk is
/// no reason not to start.
pub(super) fn settle(ids: Privileges) {
    for list in SUBORDINATE_IDS {
        drop(give_ids(list, ids.ids_of_a_box()));
    }
    for (path, text) in SETTINGS {
        drop(write_settings(Path::new(path), text));
    }
}

/// Root of the box may give a container all ids the box has but its own first one, which it has anyway.
fn give_ids(list: &str, ids: u32) -> io::Result<()> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::APPEND | OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut list = File::from(within::open(Path::new(list), flags, 0o644)?);
    let about = list.metadata()?;
    if !about.is_file() || about.len() > LIST_BYTES_MAX {
        return Ok(());
    }
    let mut text = String::new();
    (&list).take(LIST_BYTES_MAX).read_to_string(&mut text)?;
    let Some(line) = missing_line(&text, ids) else {
        return Ok(());
    };
    let written = list.write_all(line.as_bytes());
    if written.is_err() {
        drop(list.set_len(about.len()));
    }
    written
}

/// What the list lacks, with a line's end before it where the last line has none.
fn missing_line(list: &str, ids: u32) -> Option<String> {
    let of_root = |line: &str| line.starts_with("root:") || line.starts_with("0:");
    if list.lines().any(of_root) {
        return None;
    }
    let gap = if list.is_empty() || list.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    Some(format!("{gap}root:1:{}\n", ids - 1))
}

fn write_settings(path: &Path, text: &str) -> io::Result<()> {
    if within::is_there(path) {
        return Ok(());
    }
    if let Some(above) = path.parent() {
        within::folder(above, 0o755, None)?;
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let mut file = File::from(within::open(path, flags, 0o644)?);
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_given_its_ids_once_and_whoever_has_some_keeps_them() {
        let whole = "root:1:65535\n";
        assert_eq!(missing_line("", 65_536).as_deref(), Some(whole));
        assert_eq!(missing_line("you:100:5\n", 65_536).as_deref(), Some(whole));
        let after_half = missing_line("you:100:5", 65_535);
        assert_eq!(after_half.as_deref(), Some("\nroot:1:65534\n"));
        for has in [whole, "you:1:2\nroot:5:1\n", "0:1:65535\n"] {
            assert_eq!(missing_line(has, 65_536), None, "{has}");
        }
    }

    #[test]
    fn settings_are_written_once_and_whoever_has_some_keeps_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/50-box.conf");
        write_settings(&path, "ours").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "ours");
        std::fs::write(&path, "theirs").unwrap();
        write_settings(&path, "ours").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "theirs");
    }

    #[test]
    fn lists_are_added_to_where_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("subuid");
        std::fs::write(&list, "you:7:1\n").unwrap();
        for _ in 0..2 {
            give_ids(list.to_str().unwrap(), 10).unwrap();
            let text = std::fs::read_to_string(&list).unwrap();
            assert_eq!(text, "you:7:1\nroot:1:9\n");
        }
    }
}
