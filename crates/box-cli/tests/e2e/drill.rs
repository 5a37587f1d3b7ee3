//! The drill, as a person runs it: every claim holds and every control passes, in both profiles.

use super::program::Program;
use super::seed;
use box_drill::{Control, Outcome, Report};
use std::collections::BTreeSet;
use std::time::Duration;

/// Some thirty probes, each of which runs programs in boxes.
const DRILL_DEADLINE: Duration = Duration::from_mins(4);

#[test]
fn drill_holds_in_profile_locked() {
    every_claim_holds("locked");
}

#[test]
fn drill_holds_in_profile_root() {
    every_claim_holds("root");
}

fn every_claim_holds(profile: &str) {
    let seed = seed::ready();
    let words = [
        "--net",
        "--",
        env!("CARGO_BIN_EXE_box"),
        "drill",
        "--profile",
        profile,
        "--json",
    ];
    let before = guests();
    let mut drill = Program::other("unshare", &words);
    drill
        .command
        .env("BOX_DATA_DIR", &seed)
        .env("BOX_RUN_DIR", seed.join("run"))
        .env("BOX_CONFIG", seed.join("config.toml"));
    let said = drill.deadline(DRILL_DEADLINE).run();
    let report: Report = serde_json::from_str(&said.out)
        .unwrap_or_else(|error| panic!("{error}: {} {}", said.out, said.err));
    assert_eq!(report.profile, profile);
    assert!(report.probes.len() >= 25, "{} probes", report.probes.len());
    for probe in &report.probes {
        let holds = probe.outcome == Outcome::Held && probe.control == Control::Passed;
        assert!(holds, "{}: {:?}", probe.name, probe);
    }
    said.assert_code(0);
    let left: Vec<u32> = guests().difference(&before).copied().collect();
    assert_eq!(left, [0u32; 0], "boxes the drill left running");
}

/// Every box of this machine, by its process 1.
fn guests() -> BTreeSet<u32> {
    let numbers = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name.trim_end() == "box-guest")
    })
    .collect()
}
