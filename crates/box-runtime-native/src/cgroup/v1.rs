//! cgroup v1: one cgroup a box in each of the controllers we use, at `/box/<id>`.

use super::{Motion, keyed, make_folder, number, read, remove_folder, set};
use crate::step::{Step as _, StepError};
use box_api::BoxId;
use box_api::control::Limits;
use box_runtime::Usage;
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// A box without one of these would not be limited.
const NEEDED: [&str; 3] = ["pids", "memory", "cpu"];
/// Wanted for freezing a box and for telling what it uses; not every machine has them.
const WANTED: [&str; 2] = ["freezer", "cpuacct"];
/// Our part of each hierarchy, beside what systemd or Docker have there.
const OURS: &str = "box";
const CPU_PERIOD_MICROS: u64 = 100_000;
const FREEZER: &str = "freezer";
/// The freezer's one file, and what is written to it.
const STATE: &str = "freezer.state";
const FROZEN: &str = "FROZEN";
const THAWED: &str = "THAWED";

/// The folders `…/box` of the controllers.
#[derive(Debug)]
pub(crate) struct Hierarchies(Vec<Controller>);

#[derive(Debug)]
struct Controller {
    name: &'static str,
    folder: PathBuf,
}

impl Hierarchies {
    /// The mounted hierarchies, if all we need are there and let us make cgroups.
    pub(super) fn find() -> Option<Self> {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
        let usable = |name: &'static str| {
            let folder = mount_point(&mounts, name)?.join(OURS);
            make_folder(&folder).ok()?;
            File::options()
                .write(true)
                .open(folder.join("tasks"))
                .ok()?;
            Some(Controller { name, folder })
        };
        let mut controllers = NEEDED.into_iter().map(usable).collect::<Option<Vec<_>>>()?;
        // Mounted together, as systemd has them, two controllers share their folders.
        for wanted in WANTED.into_iter().filter_map(usable) {
            controllers.push(wanted);
        }
        Some(Self(controllers))
    }

    /// The box's folder of a controller; `NOENT` where there is none.
    fn folder(&self, name: &str, id: &BoxId) -> io::Result<PathBuf> {
        let controller = self.0.iter().find(|controller| controller.name == name);
        let controller = controller.ok_or(Errno::NOENT)?;
        Ok(controller.folder.join(id.as_str()))
    }

    pub(super) fn make(&self, id: &BoxId, limits: &Limits) -> Result<Vec<File>, StepError> {
        let make = |controller: &Controller| -> io::Result<File> {
            let folder = controller.folder.join(id.as_str());
            make_folder(&folder)?;
            limit(controller.name, &folder, limits)?;
            if controller.name == FREEZER {
                set(&folder, STATE, THAWED)?;
            }
            File::options().write(true).open(folder.join("tasks"))
        };
        self.0
            .iter()
            .map(|controller| {
                make(controller).step_with(|| format!("make the box's {} cgroup", controller.name))
            })
            .collect()
    }

    pub(super) fn set(&self, id: &BoxId, limits: &Limits) -> Result<(), StepError> {
        self.0.iter().try_for_each(|controller| {
            limit(
                controller.name,
                &controller.folder.join(id.as_str()),
                limits,
            )
            .step_with(|| format!("change the box's {} limit", controller.name))
        })
    }

    pub(super) fn freezes(&self) -> bool {
        self.0.iter().any(|controller| controller.name == FREEZER)
    }

    pub(super) fn put(&self, id: &BoxId, motion: Motion) -> Result<(), StepError> {
        let state = match motion {
            Motion::Frozen => FROZEN,
            Motion::Thawed => THAWED,
        };
        let put = self
            .folder(FREEZER, id)
            .and_then(|folder| set(&folder, STATE, state));
        put.step("freeze or thaw the box")
    }

    /// Reading the state is what makes the kernel look whether all have stopped
    /// (Documentation/admin-guide/cgroup-v1/freezer-subsystem.rst).
    pub(super) fn motion(&self, id: &BoxId) -> io::Result<Motion> {
        let state = read(&self.folder(FREEZER, id)?, STATE)?;
        Ok(if state.trim() == FROZEN {
            Motion::Frozen
        } else {
            Motion::Thawed
        })
    }

    pub(super) fn usage(&self, id: &BoxId) -> io::Result<Usage> {
        let (memory, pids) = (self.folder("memory", id)?, self.folder("pids", id)?);
        let used = number(&memory, "memory.usage_in_bytes")?;
        let cache = keyed(&read(&memory, "memory.stat")?, "total_inactive_file");
        let cpu_ns = self
            .folder("cpuacct", id)
            .and_then(|folder| number(&folder, "cpuacct.usage"));
        Ok(Usage {
            cpu_us: cpu_ns.unwrap_or(0) / 1000,
            memory_bytes: used.saturating_sub(cache),
            processes: u32::try_from(number(&pids, "pids.current")?).unwrap_or(u32::MAX),
            frozen: self.motion(id).is_ok_and(|motion| motion == Motion::Frozen),
            out_of_memory: keyed(&read(&memory, "memory.oom_control")?, "oom_kill"),
            out_of_processes: keyed(&read(&pids, "pids.events")?, "max"),
        })
    }

    pub(super) fn remove(&self, id: &BoxId) -> Result<(), StepError> {
        // Each is tried, whatever the others say.
        let results: Vec<_> = self
            .0
            .iter()
            .map(|controller| {
                remove_folder(&controller.folder.join(id.as_str()))
                    .step_with(|| format!("remove the box's {} cgroup", controller.name))
            })
            .collect();
        results.into_iter().collect()
    }
}

fn limit(controller: &str, folder: &Path, limits: &Limits) -> io::Result<()> {
    match controller {
        "pids" => set(folder, "pids.max", &limits.pids.to_string()),
        "memory" => limit_memory(folder, limits.memory_bytes),
        "cpu" => {
            let quota = u64::from(limits.cpu_milli) * CPU_PERIOD_MICROS / 1000;
            set(folder, "cpu.cfs_period_us", &CPU_PERIOD_MICROS.to_string())?;
            set(folder, "cpu.cfs_quota_us", &quota.to_string())
        }
        _ => Ok(()),
    }
}

/// Memory and swap together may not pass the limit; a kernel without swap accounting has no file
/// for it. When the limit of an existing cgroup grows, the sum must grow first.
fn limit_memory(folder: &Path, bytes: u64) -> io::Result<()> {
    const BOTH: &str = "memory.memsw.limit_in_bytes";
    let bytes = bytes.to_string();
    if set(folder, "memory.limit_in_bytes", &bytes).is_err() {
        set(folder, BOTH, &bytes)?;
        set(folder, "memory.limit_in_bytes", &bytes)?;
    }
    match set(folder, BOTH, &bytes) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    set(folder, "memory.swappiness", "0")
}

/// Where a controller's hierarchy is mounted (`proc_pid_mountinfo(5)`: the fifth field is the mount
/// point, after ` - ` come type, source and options).
fn mount_point(mountinfo: &str, controller: &str) -> Option<PathBuf> {
    mountinfo.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let is_cgroup = after.next() == Some("cgroup");
        let has = after.nth(1)?.split(',').any(|option| option == controller);
        let point = before.split(' ').nth(4)?;
        (is_cgroup && has).then(|| PathBuf::from(point))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_are_found_by_their_options() {
        let mounts = "\
            30 24 0:26 / /sys/fs/cgroup ro shared:8 - tmpfs tmpfs ro,mode=755\n\
            33 30 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:15 - cgroup cgroup rw,cpu,cpuacct\n\
            34 30 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n";
        let cpu = mount_point(mounts, "cpu").unwrap();
        assert_eq!(cpu, Path::new("/sys/fs/cgroup/cpu,cpuacct"));
        assert_eq!(mount_point(mounts, "memory"), None);
    }
}
