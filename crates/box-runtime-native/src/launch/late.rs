//! Why a box did not come up in time, as far as its first process shows it.

use crate::step::StepError;
use rustix::process::Pid;
use std::fs;

/// What a person reads: what it hung in, and what is usually behind that.
pub(super) fn told(pid: Pid, seconds: i64) -> StepError {
    let read = |file: &str| {
        let path = format!("/proc/{}/{file}", pid.as_raw_nonzero());
        fs::read_to_string(path).unwrap_or_default()
    };
    let stat = read("stat");
    // The second field is a name in parentheses that may itself hold any character.
    let state = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.split_whitespace().next())
        .unwrap_or_default();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_whitespace().next().unwrap_or("unknown");
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let why = why(state, read("wchan").trim());
    StepError::told(&format!(
        "start the box within {seconds} s: {why} (load {load} on {cpus} CPUs)"
    ))
}

/// By the state of `proc_pid_stat(5)` and where in the kernel it waits (`proc_pid_wchan(5)`).
fn why(state: &str, waits_in: &str) -> String {
    let place = match waits_in {
        "" | "0" => String::new(),
        place => format!(" in `{place}`"),
    };
    match state {
        _ if waits_in.contains("freez") || waits_in.contains("refrigerator") => {
            "its cgroup is frozen; something else freezes cgroups of this machine".to_owned()
        }
        "D" => format!("it waits for a disk{place}; the disk is busy, full or does not answer"),
        "T" | "t" => "it was stopped; something sent it SIGSTOP or traces it".to_owned(),
        "R" => "it computes still; the machine has too much to do".to_owned(),
        "S" => format!("it waits{place}; a mount or the network of the kernel hangs"),
        "Z" | "X" | "" => "its first process died".to_owned(),
        other => format!("its first process is in state {other}{place}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_be_late_names_a_cause() {
        for (state, waits_in, part) in [
            ("D", "io_schedule", "for a disk in `io_schedule`"),
            ("D", "0", "for a disk;"),
            ("T", "do_signal_stop", "SIGSTOP"),
            ("R", "0", "too much to do"),
            ("S", "do_freezer_trap", "frozen"),
            ("S", "rtnl_lock", "in `rtnl_lock`; a mount or the network"),
            ("", "", "died"),
        ] {
            let text = why(state, waits_in);
            assert!(text.contains(part), "{text}");
        }
    }
}
