//! Who pid 1 of a box is, written down so that any later host finds it and nothing else.

use crate::launch::started_ticks;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::Deserialize;
use std::path::Path;

pub(crate) const FILE: &str = "record.json";
/// Longer than any record.
const BYTES_MAX: u64 = 512;

/// Written by the spawner before the box's first process does anything of its own. A pid alone may
/// be used again; pid, start time and run of the kernel together are not.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Record {
    pid: u32,
    /// `proc_pid_stat(5)`, field 22.
    started_ticks: u64,
    /// `/proc/sys/kernel/random/boot_id`
    boot: String,
}

impl Record {
    /// The record in the box's run folder; `None` when the box was not started or half started.
    pub(crate) fn read(folder: &Path) -> Option<Self> {
        let path = folder.join(FILE);
        if std::fs::metadata(&path).ok()?.len() > BYTES_MAX {
            return None;
        }
        serde_json::from_slice(&std::fs::read(path).ok()?).ok()
    }

    /// The process, if it lives: its pid and a descriptor that stays with it. The descriptor is
    /// opened first, so that the comparison is about the very process it names.
    pub(crate) fn find(&self) -> Option<(u32, OwnedFd)> {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        if boot.trim_end() != self.boot {
            return None;
        }
        let pid = Pid::from_raw(i32::try_from(self.pid).ok()?)?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        let same = started_ticks(self.pid).ok()? == self.started_ticks;
        (same && lives(&pidfd)).then_some((self.pid, pidfd))
    }
}

/// A pidfd becomes readable when its process ends (`pidfd_open(2)`).
fn lives(pidfd: &OwnedFd) -> bool {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let mut polled = [PollFd::new(pidfd, PollFlags::IN)];
    poll(&mut polled, Some(&now)) == Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_this_process() -> Record {
        let pid = std::process::id();
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let boot = boot.trim_end().to_owned();
        Record {
            pid,
            started_ticks: started_ticks(pid).unwrap(),
            boot,
        }
    }

    #[test]
    fn a_process_is_found_by_all_three_and_by_no_two() {
        let record = of_this_process();
        assert_eq!(record.find().unwrap().0, std::process::id());
        let reused = Record {
            started_ticks: record.started_ticks + 1,
            ..record.clone()
        };
        assert!(reused.find().is_none(), "another process with the pid");
        let rebooted = Record {
            boot: "other".to_owned(),
            ..record.clone()
        };
        assert!(rebooted.find().is_none(), "another run of the kernel");
        let gone = Record {
            pid: 0x3FFF_FFFF,
            ..record
        };
        assert!(gone.find().is_none(), "no such process");
    }

    #[test]
    fn an_empty_record_is_a_box_that_does_not_run() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Record::read(folder.path()).is_none());
        std::fs::write(folder.path().join(FILE), "").unwrap();
        assert!(Record::read(folder.path()).is_none());
    }
}
