//! What a host must not leave behind, and its removal when a test failed.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const END_DEADLINE: Duration = Duration::from_secs(10);

const GRACE: Duration = Duration::from_secs(5);

/// Kills one process and waits until it is gone.
#[track_caller]
pub(crate) fn kill(pid: u32) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else {
        return;
    };
    let _gone = pidfd_send_signal(&pidfd, Signal::KILL);
    assert!(
        super::program::ends_within(&pidfd, END_DEADLINE),
        "{pid:?} survived SIGKILL"
    );
}

fn gone_within(pid: u32, deadline: Duration) -> bool {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    let pidfd = pidfd_open(pid, PidfdFlags::empty());
    pidfd.map_or(true, |pidfd| super::program::ends_within(&pidfd, deadline))
}

/// Ends the box-egress of a run folder, if one is there: it outlives its host by design. It is
/// who holds the listening socket.
pub(crate) fn end_egress(run: &Path) {
    holders(run).into_iter().for_each(kill);
}

/// The box-egress of a run folder.
pub(crate) fn egress_of(run: &Path) -> Option<u32> {
    holders(run).pop()
}

fn holders(run: &Path) -> Vec<u32> {
    let path = run.join("egress.sock").display().to_string();
    let table = fs::read_to_string("/proc/thread-self/net/unix").unwrap();
    let of_path = |line: &&str| line.ends_with(&format!(" {path}"));
    // `Num RefCount Protocol Flags Type St Inode Path`
    let inodes = table
        .lines()
        .filter(of_path)
        .filter_map(|line| line.split_whitespace().nth(6));
    let links: HashSet<PathBuf> = inodes
        .map(|inode| PathBuf::from(format!("socket:[{inode}]")))
        .collect();
    let holds = |pid: &u32| {
        let files = fs::read_dir(format!("/proc/{pid}/fd"))
            .into_iter()
            .flatten()
            .flatten();
        files
            .filter_map(|file| fs::read_link(file.path()).ok())
            .any(|link| links.contains(&link))
    };
    pids().filter(holds).collect()
}

/// Every process but this one.
fn pids() -> impl Iterator<Item = u32> {
    let numbers = fs::read_dir("/proc").unwrap().flatten();
    let pids = numbers.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok());
    pids.filter(|pid| *pid != std::process::id())
}

/// Ends what is still there and says what it was. box-egress outlives its host by design: it is
/// ended here first.
pub(crate) fn clean_up(data: &Path, run: &Path, ids: &HashSet<String>) -> Vec<String> {
    let mut left = Vec::new();
    end_egress(run);
    for (pid, command) in processes(ids) {
        // What has been told to end may take a moment.
        if !gone_within(pid, GRACE) {
            left.push(format!("process {pid}: {command}"));
            kill(pid);
        }
    }
    for place in mounts(data).into_iter().chain(mounts(run)) {
        // On the data folder itself only a test mounts something.
        if place != data {
            left.push(format!("mount {}", place.display()));
        }
        let _gone = rustix::mount::unmount(&place, rustix::mount::UnmountFlags::DETACH);
    }
    for group in cgroups(ids) {
        left.push(format!("cgroup {}", group.display()));
        let _gone = fs::remove_dir(&group);
    }
    left
}

/// Ids of the boxes of this data folder, stopped ones as well.
pub(crate) fn box_ids(data: &Path) -> HashSet<String> {
    let entries = fs::read_dir(data.join("boxes"))
        .into_iter()
        .flatten()
        .flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Processes on this test's internet, and those of its boxes. The test's own threads are not
/// processes of their own.
fn processes(ids: &HashSet<String>) -> Vec<(u32, String)> {
    let here = fs::read_link("/proc/thread-self/ns/net").unwrap();
    let of_box = |pid: u32| {
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        ids.iter().any(|id| groups.contains(id.as_str()))
    };
    pids()
        .filter(|pid| {
            let net = fs::read_link(format!("/proc/{pid}/ns/net"));
            net.is_ok_and(|net| net == here) || of_box(*pid)
        })
        .map(|pid| {
            let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            (pid, String::from_utf8_lossy(&command).replace('\0', " "))
        })
        .collect()
}

fn mounts(below: &Path) -> Vec<PathBuf> {
    let table = fs::read_to_string("/proc/thread-self/mountinfo").unwrap();
    let places = table
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .map(PathBuf::from);
    let mut places: Vec<PathBuf> = places.filter(|place| place.starts_with(below)).collect();
    // The newest lies on top.
    places.reverse();
    places
}

/// Groups named after a box, in every hierarchy.
fn cgroups(ids: &HashSet<String>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![(PathBuf::from("/sys/fs/cgroup"), 0)];
    while let Some((folder, depth)) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            if ids.iter().any(|id| name.contains(id.as_str())) {
                found.push(entry.path());
            } else if depth < 6 {
                folders.push((entry.path(), depth + 1));
            }
        }
    }
    found
}
