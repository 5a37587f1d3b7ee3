//! A box without a cgroup, seen process by process (proc(5)).
//!
//! Every process of a box descends from its pid 1: orphans become that one's children
//! (`pid_namespaces(7)`).

use box_runtime::Usage;
use rustix::io::Errno;
use std::io;

/// Processes of one box that are looked at; a box with more is told by these.
const PROCESSES_MAX: usize = 65_536;
/// Of the times in `stat`: `sysconf(_SC_CLK_TCK)` is 100 on every Linux (time(7)).
const TICK_US: u64 = 10_000;

/// What is read of `/proc/<pid>/stat`, counted from the field after the name (`proc_pid_stat(5)`).
struct Stat {
    state: char,
    /// User and system time, its own and that of the children it has waited for.
    ticks: u64,
    threads: u32,
    resident_pages: u64,
}

/// The pid and all that descend from it. Those that end meanwhile are left out.
fn descendants(first: u32) -> Vec<u32> {
    let mut pids = vec![first];
    let mut next = 0;
    while let Some(pid) = pids.get(next).copied() {
        next += 1;
        for thread in threads(pid) {
            let path = format!("/proc/{pid}/task/{thread}/children");
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let room = PROCESSES_MAX.saturating_sub(pids.len());
            pids.extend(
                text.split_ascii_whitespace()
                    .filter_map(|pid| pid.parse::<u32>().ok())
                    .take(room),
            );
        }
    }
    pids
}

fn threads(pid: u32) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

fn stat(path: &str) -> io::Result<Stat> {
    let text = std::fs::read_to_string(path)?;
    parse(&text).ok_or_else(|| io::Error::other(format!("`{path}` is not as expected")))
}

/// The name is in parentheses and may hold any character, so the last one ends it.
fn parse(text: &str) -> Option<Stat> {
    let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
    let number = |index: usize| fields.get(index)?.trim().parse::<i64>().ok();
    let count = |index: usize| number(index).map(|number| u64::try_from(number).unwrap_or(0));
    Some(Stat {
        state: fields.first()?.chars().next()?,
        ticks: count(11)? + count(12)? + count(13)? + count(14)?,
        threads: u32::try_from(number(17)?).ok()?,
        resident_pages: count(21)?,
    })
}

/// What the box of this pid 1 uses. Memory that processes share is counted in each.
pub(crate) fn usage(first: u32) -> io::Result<Usage> {
    stat(&format!("/proc/{first}/stat"))?;
    let mut usage = Usage::default();
    let page = rustix::param::page_size() as u64;
    for pid in descendants(first) {
        let Ok(stat) = stat(&format!("/proc/{pid}/stat")) else {
            continue;
        };
        usage.cpu_us += stat.ticks * TICK_US;
        usage.memory_bytes += stat.resident_pages * page;
        usage.processes += stat.threads;
    }
    Ok(usage)
}

/// Whether every thread of the box is stopped, or ending. A traced one that has stopped counts.
///
/// # Errors
/// `SRCH` when the box has ended.
pub(crate) fn stands_still(first: u32) -> io::Result<bool> {
    let state = stat(&format!("/proc/{first}/stat"))?.state;
    if matches!(state, 'Z' | 'X') {
        return Err(Errno::SRCH.into());
    }
    let stopped = |(pid, thread): (u32, u32)| match stat(&format!("/proc/{pid}/task/{thread}/stat"))
    {
        Ok(stat) => matches!(stat.state, 'T' | 't' | 'Z' | 'X'),
        // It has ended.
        Err(error) => Errno::from_io_error(&error).is_some(),
    };
    let all = descendants(first)
        .into_iter()
        .flat_map(|pid| threads(pid).into_iter().map(move |thread| (pid, thread)));
    Ok(all.into_iter().all(stopped))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let text = "42 (a) R (b) S 1 42 42 0 -1 4194304 100 0 0 0 7 5 3 1 20 0 4 0 1000 \
                    1000000 250 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0\n";
        let stat = parse(text).unwrap();
        assert_eq!(stat.state, 'S');
        assert_eq!(
            (stat.ticks, stat.threads, stat.resident_pages),
            (16, 4, 250)
        );
        assert!(parse("42 (cut").is_none());
    }

    #[test]
    fn this_process_runs_and_uses_something() {
        let usage = usage(std::process::id()).unwrap();
        assert!(!stands_still(std::process::id()).unwrap());
        assert!(usage.memory_bytes > 0 && usage.processes > 0, "{usage:?}");
        assert!(stands_still(0x3FFF_FFFF).is_err(), "no such process");
    }
}
