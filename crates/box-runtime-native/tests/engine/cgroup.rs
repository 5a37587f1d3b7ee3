//! A box's cgroup as the kernel shows it to the test, v1 or v2.

use crate::harness::Host;
use box_runtime::{BoxSpec, Runtime as _};
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    One,
    Two,
}

/// Where the first process of a box stands.
pub(crate) struct Cgroup {
    pub(crate) version: Version,
    /// `/proc/<pid>/cgroup` of its first process.
    text: String,
}

impl Cgroup {
    pub(crate) fn of(host: &Host, spec: &BoxSpec) -> Self {
        let seen = host.wait(host.engine().list()).unwrap();
        let seen = seen.iter().find(|seen| seen.id == spec.id).unwrap();
        let text = std::fs::read_to_string(format!("/proc/{}/cgroup", seen.pid.unwrap())).unwrap();
        let version = if Path::new("/sys/fs/cgroup/cgroup.controllers").exists() {
            Version::Two
        } else {
            Version::One
        };
        let cgroup = Self { version, text };
        let folder = cgroup.folder("pids");
        assert!(folder.ends_with(spec.id.as_str()), "{}", folder.display());
        cgroup
    }

    /// The folder of a controller; on v2 there is one for all.
    pub(crate) fn folder(&self, controller: &str) -> PathBuf {
        let fields = |line: &str| -> Option<(String, String)> {
            let mut fields = line.splitn(3, ':').skip(1);
            Some((fields.next()?.to_owned(), fields.next()?.to_owned()))
        };
        let line = self
            .text
            .lines()
            .filter_map(fields)
            .find(|(names, _)| match self.version {
                Version::One => names.split(',').any(|name| name == controller),
                Version::Two => names.is_empty(),
            });
        let (_, below) = line.unwrap();
        let top = match self.version {
            Version::One => PathBuf::from("/sys/fs/cgroup").join(controller),
            Version::Two => PathBuf::from("/sys/fs/cgroup"),
        };
        top.join(below.trim_start_matches('/'))
    }

    pub(crate) fn read(&self, controller: &str, file: &str) -> String {
        let path = self.folder(controller).join(file);
        let text = std::fs::read_to_string(&path);
        text.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    fn number(&self, controller: &str, file: &str) -> u64 {
        self.read(controller, file).trim().parse().unwrap()
    }

    fn after(&self, file: &str, key: &str) -> u64 {
        let text = self.read("cpu", file);
        let line = text.lines().find_map(|line| line.strip_prefix(key));
        line.unwrap().trim().parse().unwrap()
    }

    pub(crate) fn is_there(&self) -> bool {
        self.folder("pids").exists()
    }

    pub(crate) fn pids_max(&self) -> u64 {
        self.number("pids", "pids.max")
    }

    pub(crate) fn pids(&self) -> u64 {
        self.number("pids", "pids.current")
    }

    pub(crate) fn memory_max(&self) -> u64 {
        match self.version {
            Version::One => self.number("memory", "memory.limit_in_bytes"),
            Version::Two => self.number("memory", "memory.max"),
        }
    }

    /// How much of the memory may be swapped out.
    pub(crate) fn swap_max(&self) -> u64 {
        match self.version {
            Version::One => {
                let both = self.number("memory", "memory.memsw.limit_in_bytes");
                both - self.memory_max()
            }
            Version::Two => self.number("memory", "memory.swap.max"),
        }
    }

    pub(crate) fn cpu_milli(&self) -> u64 {
        match self.version {
            Version::One => {
                let quota = self.number("cpu", "cpu.cfs_quota_us");
                quota * 1000 / self.number("cpu", "cpu.cfs_period_us")
            }
            Version::Two => {
                let text = self.read("cpu", "cpu.max");
                let (quota, period) = text.trim().split_once(' ').unwrap();
                quota.parse::<u64>().unwrap() * 1000 / period.parse::<u64>().unwrap()
            }
        }
    }

    /// How often the box was held back for its share of the CPU.
    pub(crate) fn throttled(&self) -> u64 {
        self.after("cpu.stat", "nr_throttled ")
    }
}
