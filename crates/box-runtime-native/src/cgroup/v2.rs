//! cgroup v2: a subtree that was delegated to us, one cgroup a box below it.
//!
//! ```text
//! <delegated>/            box.slice, a unit with Delegate=yes, or a container's own root
//!   supervisor/           the host and the spawner
//!   <box id>/             the box
//! ```

use super::{Motion, keyed, make_folder, number, read, remove_folder, set};
use crate::step::{Step as _, StepError};
use box_api::BoxId;
use box_api::control::Limits;
use box_runtime::Usage;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};

const MOUNTED_AT: &str = "/sys/fs/cgroup";
/// `CGROUP2_SUPER_MAGIC` of statfs(2).
const MAGIC: u64 = 0x6367_7270;
const SUPERVISOR: &str = "supervisor";
const CONTROLLERS: [&str; 3] = ["memory", "pids", "cpu"];
const CPU_PERIOD_MICROS: u64 = 100_000;
const FREEZE: &str = "cgroup.freeze";

/// The delegated cgroup.
#[derive(Debug)]
pub(crate) struct Subtree(PathBuf);

impl Subtree {
    /// Our own cgroup, if it is ours to divide and has the controllers; makes it ready.
    pub(super) fn find() -> Option<Self> {
        let magic = rustix::fs::statfs(MOUNTED_AT).ok()?.f_type;
        if u64::try_from(magic).ok()? != MAGIC {
            return None;
        }
        let cgroups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = own_cgroup(&cgroups)?;
        let own = Path::new(MOUNTED_AT).join(own.trim_start_matches('/'));
        // A host that was started again by hand may stand where the last one moved to.
        let root = match own.file_name() {
            Some(name) if name == SUPERVISOR => own.parent()?.to_path_buf(),
            Some(_) | None => own,
        };
        (is_ours(&root) && has_controllers(&root) && make_ready(&root).is_ok())
            .then_some(Self(root))
    }

    pub(super) fn make(&self, id: &BoxId, limits: &Limits) -> Result<OwnedFd, StepError> {
        let folder = self.0.join(id.as_str());
        let make = || -> io::Result<OwnedFd> {
            make_folder(&folder)?;
            limit(&folder, limits)?;
            set(&folder, FREEZE, "0")?;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            Ok(rustix::fs::open(&folder, flags, Mode::empty())?)
        };
        make().step("make the box's cgroup")
    }

    pub(super) fn set(&self, id: &BoxId, limits: &Limits) -> Result<(), StepError> {
        limit(&self.0.join(id.as_str()), limits).step("change the box's limits")
    }

    pub(super) fn put(&self, id: &BoxId, motion: Motion) -> Result<(), StepError> {
        let value = match motion {
            Motion::Frozen => "1",
            Motion::Thawed => "0",
        };
        set(&self.0.join(id.as_str()), FREEZE, value).step("freeze or thaw the box")
    }

    /// `cgroup.freeze` says what is wished, `frozen` of `cgroup.events` what is.
    pub(super) fn motion(&self, id: &BoxId) -> io::Result<Motion> {
        let events = read(&self.0.join(id.as_str()), "cgroup.events")?;
        Ok(if keyed(&events, "frozen") == 1 {
            Motion::Frozen
        } else {
            Motion::Thawed
        })
    }

    pub(super) fn usage(&self, id: &BoxId) -> io::Result<Usage> {
        let folder = self.0.join(id.as_str());
        let used = number(&folder, "memory.current")?;
        let cache = keyed(&read(&folder, "memory.stat")?, "inactive_file");
        Ok(Usage {
            cpu_us: keyed(&read(&folder, "cpu.stat")?, "usage_usec"),
            memory_bytes: used.saturating_sub(cache),
            processes: u32::try_from(number(&folder, "pids.current")?).unwrap_or(u32::MAX),
            frozen: self.motion(id)? == Motion::Frozen,
            out_of_memory: keyed(&read(&folder, "memory.events")?, "oom_kill"),
            out_of_processes: keyed(&read(&folder, "pids.events")?, "max"),
        })
    }

    pub(super) fn remove(&self, id: &BoxId) -> Result<(), StepError> {
        let folder = self.0.join(id.as_str());
        // Whoever is still in it dies (Linux 5.14; before that pid 1's death has seen to it).
        match set(&folder, "cgroup.kill", "1") {
            Err(error) if error.raw_os_error() == Some(Errno::NOENT.raw_os_error()) => {}
            result => result.step("kill what is left in the box's cgroup")?,
        }
        remove_folder(&folder).step("remove the box's cgroup")
    }
}

/// The path after `0::` (cgroups(7)).
fn own_cgroup(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("0::"))
}

/// Where systemd rules, only a cgroup it marked as delegated may be divided (systemd's
/// `CGROUP_DELEGATION`); elsewhere whatever the kernel lets us write.
fn is_ours(root: &Path) -> bool {
    if !Path::new("/run/systemd/system").exists() {
        return true;
    }
    let marked = |name: &str| {
        let mut value = [0; 8];
        rustix::fs::getxattr(root, name, &mut value).is_ok_and(|length| value[..length] == *b"1")
    };
    marked("trusted.delegate") || marked("user.delegate")
}

fn has_controllers(root: &Path) -> bool {
    let list = std::fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
    CONTROLLERS
        .iter()
        .all(|wanted| list.split_whitespace().any(|name| name == *wanted))
}

/// Moves this process into its leaf and hands the controllers down. Fails with EBUSY when other
/// processes stand in the cgroup too: they are not ours to move.
fn make_ready(root: &Path) -> io::Result<()> {
    let leaf = root.join(SUPERVISOR);
    make_folder(&leaf)?;
    set(&leaf, "cgroup.procs", "0")?;
    for controller in CONTROLLERS {
        set(root, "cgroup.subtree_control", &format!("+{controller}"))?;
    }
    Ok(())
}

/// Not as a group out of memory: a program that grows too large dies, the box and its agent live on.
fn limit(folder: &Path, limits: &Limits) -> io::Result<()> {
    let quota = u64::from(limits.cpu_milli) * CPU_PERIOD_MICROS / 1000;
    set(folder, "pids.max", &limits.pids.to_string())?;
    set(folder, "memory.max", &limits.memory_bytes.to_string())?;
    set(folder, "cpu.max", &format!("{quota} {CPU_PERIOD_MICROS}"))?;
    set(folder, "memory.oom.group", "0")?;
    match set(folder, "memory.swap.max", "0") {
        // Without swap in the kernel there is no such file.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_cgroup_is_the_one_of_hierarchy_zero() {
        assert_eq!(
            own_cgroup("12:pids:/x\n0::/system.slice/box.service\n"),
            Some("/system.slice/box.service")
        );
        assert_eq!(own_cgroup("12:pids:/x\n"), None);
    }
}
