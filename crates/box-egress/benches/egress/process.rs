//! What a program and those it started use (proc(5)).

use std::collections::BTreeMap;

/// Kernel clock ticks in a second, on every Linux there is (`sysconf(_SC_CLK_TCK)`).
const TICKS: f64 = 100.0;
const PAGE_BYTES: u64 = 4096;

/// CPU seconds so far, of the process and all below it.
pub(crate) fn cpu_seconds(pid: u32) -> f64 {
    let ticks = family(pid).into_iter().map(|pid| {
        let fields = stat(pid);
        let number = |at: usize| fields.get(at).and_then(|text| text.parse::<u64>().ok());
        // Fields 14 and 15, counted from the one behind the name, which is the third.
        number(11).unwrap_or(0) + number(12).unwrap_or(0)
    });
    to_f64(ticks.sum()) / TICKS
}

/// Resident memory in bytes, of the process and all below it.
pub(crate) fn resident_bytes(pid: u32) -> u64 {
    let resident = family(pid).into_iter().map(|pid| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
        let pages = text
            .split(' ')
            .nth(1)
            .and_then(|text| text.parse::<u64>().ok());
        pages.unwrap_or(0) * PAGE_BYTES
    });
    resident.sum()
}

#[expect(clippy::cast_precision_loss, reason = "far below 52 bits")]
pub(crate) fn to_f64(number: u64) -> f64 {
    number as f64
}

/// What stands behind the name in `/proc/<pid>/stat`.
fn stat(pid: u32) -> Vec<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let rest = text.rsplit_once(") ").map_or("", |(_, rest)| rest);
    rest.split(' ').map(str::to_owned).collect()
}

fn family(top: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        if let Some(parent) = stat(pid).get(1).and_then(|text| text.parse().ok()) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = vec![top];
    let mut at = 0;
    while let Some(pid) = found.get(at) {
        found.extend(children.get(pid).cloned().unwrap_or_default());
        at += 1;
    }
    found
}
