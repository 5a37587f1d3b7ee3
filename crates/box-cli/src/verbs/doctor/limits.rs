//! Who holds the limits of a box (cgroups(7)): read only, nothing is made or moved.

use super::finding::{Finding, Level};
use rustix::fs::Access;
use std::path::{Path, PathBuf};

const NAME: &str = "limits";
const MOUNTED_AT: &str = "/sys/fs/cgroup";
const NEEDED: [&str; 3] = ["memory", "pids", "cpu"];

pub(super) fn look() -> Finding {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let own = own_of_v2(&read("/proc/self/cgroup"));
    let unified = own.and_then(|own| v2(&Path::new(MOUNTED_AT).join(own)));
    unified.unwrap_or_else(|| v1(&read("/proc/self/mountinfo")))
}

/// The path after `0::`, without its first slash.
fn own_of_v2(text: &str) -> Option<String> {
    let own = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(own.to_owned())
}

/// `None`: no cgroup v2 with controllers here.
fn v2(own: &Path) -> Option<Finding> {
    let list = |file: PathBuf| std::fs::read_to_string(file).unwrap_or_default();
    let all = list(Path::new(MOUNTED_AT).join("cgroup.controllers"));
    if !has_all(&all) {
        return None;
    }
    let here = list(own.join("cgroup.controllers"));
    let is_ours = may_write(&own.join("cgroup.subtree_control")) && is_delegated(own);
    Some(if is_ours && has_all(&here) {
        Finding::good(NAME, "limits are held by cgroup v2")
    } else {
        Finding::new(
            NAME,
            Level::Less,
            "limits are best effort for a host started from here",
        )
        .because(format!(
            "this process's cgroup `{}` is not its own to divide",
            own.display()
        ))
        .mended_by("`box install` makes a unit with `Delegate=yes`; start the host by it")
    })
}

fn has_all(controllers: &str) -> bool {
    NEEDED
        .iter()
        .all(|wanted| controllers.split_whitespace().any(|name| name == *wanted))
}

/// Where systemd rules, only what it marked as delegated may be divided.
fn is_delegated(own: &Path) -> bool {
    if !Path::new("/run/systemd/system").exists() {
        return true;
    }
    ["trusted.delegate", "user.delegate"].iter().any(|name| {
        let mut value = [0; 8];
        rustix::fs::getxattr(own, *name, &mut value).is_ok_and(|length| value[..length] == *b"1")
    })
}

fn v1(mounts: &str) -> Finding {
    let folders = NEEDED.map(|name| mount_point(mounts, name));
    let lacking: Vec<&str> = NEEDED
        .iter()
        .zip(&folders)
        .filter(|(_, folder)| folder.is_none())
        .map(|(name, _)| *name)
        .collect();
    let finding = Finding::new(
        NAME,
        Level::Less,
        "limits are best effort: memory is per process",
    );
    if !lacking.is_empty() {
        return finding
            .because(format!("no cgroup controller `{}`", lacking.join("`, `")))
            .mended_by("mount cgroup2 at /sys/fs/cgroup, as systemd does on its own");
    }
    let closed = folders.iter().flatten().find(|folder| !may_write(folder));
    match closed {
        None => Finding::good(NAME, "limits are held by cgroup v1"),
        Some(closed) => finding
            .because(format!("`{}` is not ours to write", closed.display()))
            .mended_by(
                "run the host as root, or use cgroup v2 (`systemd.unified_cgroup_hierarchy=1`)",
            ),
    }
}

/// Where a controller of version 1 is mounted (`proc_pid_mountinfo(5)`).
fn mount_point(mounts: &str, controller: &str) -> Option<PathBuf> {
    let line = mounts.lines().find(|line| {
        line.contains(" - cgroup ")
            && line
                .rsplit(' ')
                .next()
                .is_some_and(|options| options.split(',').any(|one| one == controller))
    })?;
    line.split(' ').nth(4).map(PathBuf::from)
}

fn may_write(path: &Path) -> bool {
    rustix::fs::access(path, Access::WRITE_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
31 30 0:27 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory
32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct
33 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
";

    #[test]
    fn controllers_are_found_where_they_are_mounted() {
        assert_eq!(
            mount_point(MOUNTS, "cpu"),
            Some("/sys/fs/cgroup/cpu,cpuacct".into())
        );
        assert_eq!(mount_point(MOUNTS, "pids"), None);
        let finding = v1(MOUNTS);
        assert_eq!(finding.level, Level::Less);
        assert!(finding.cause.unwrap().contains("`pids`"));
        assert_eq!(v1("").level, Level::Less);
    }

    #[test]
    fn the_own_cgroup_is_the_one_of_hierarchy_zero() {
        assert_eq!(
            own_of_v2("3:pids:/x\n0::/user.slice/a\n").as_deref(),
            Some("user.slice/a")
        );
        assert_eq!(own_of_v2("3:pids:/x\n"), None);
    }
}
