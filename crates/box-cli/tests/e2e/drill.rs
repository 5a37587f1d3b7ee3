//! The drill, as a person runs it: every claim holds and every control passes, in both profiles; and
//! however it ends, nothing of it stays.

use super::leaks;
use super::program::{self, Program};
use super::seed;
use box_drill::{Control, Outcome, ProbeReport, Report};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Over a hundred probes, each of which runs programs in boxes; a loaded machine takes many times as long.
const DRILL_DEADLINE: Duration = Duration::from_mins(8);
/// A host, two boxes and some probes, or the end of them.
const PART_DEADLINE: Duration = Duration::from_mins(1);
/// Well after the boxes run, well before the end.
const LATE_PROBE: &str = "process-one";

#[test]
fn drill_holds_in_profile_locked() {
    let report = every_claim_holds(&["--profile", "locked"]);
    assert_eq!((&*report.profile, report.nested), ("locked", false));
}

#[test]
fn drill_holds_in_profile_root() {
    let report = every_claim_holds(&["--profile", "root"]);
    assert_eq!((&*report.profile, report.nested), ("root", false));
}

#[test]
fn drill_holds_in_a_box_that_may_hold_containers() {
    let report = every_claim_holds(&["--nested"]);
    assert_eq!((&*report.profile, report.nested), ("root", true));
    let of_containers = |probe: &&ProbeReport| probe.name.starts_with("nested-");
    let count = report.probes.iter().filter(of_containers).count();
    assert!(count >= 30, "{count} attacks from containers");
}

fn every_claim_holds(options: &[&str]) -> Report {
    let data = data_with_images();
    let mut drill = Program::other("unshare", &words(&[options, &["--json"]].concat()));
    talk_to(&mut drill.command, data.path());
    let said = drill.deadline(DRILL_DEADLINE).run();
    let report: Report = serde_json::from_str(&said.out)
        .unwrap_or_else(|error| panic!("{error}: {} {}", said.out, said.err));
    assert!(report.probes.len() >= 60, "{} probes", report.probes.len());
    for probe in &report.probes {
        let holds = probe.outcome == Outcome::Held && probe.control == Control::Passed;
        assert!(holds, "{}: {:?}", probe.name, probe);
    }
    said.assert_code(0);
    assert_eq!(traces(data.path()), NOTHING);
    leaks::end_egress(&data.path().join("run"));
    report
}

#[test]
fn a_drill_that_is_told_to_end_leaves_nothing() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let data = data_with_images();
        let mut drill = Begun::up_to_its_boxes(data.path());
        assert_ne!(
            traces(data.path()),
            NOTHING,
            "there is something to leave behind"
        );
        let network = drill.network();
        assert_eq!(ways_out(&network).len(), 1, "there is a way out to leave");
        assert_eq!(drill.end(signal), Some(128 + signal.as_raw()));
        assert_eq!(traces(data.path()), NOTHING, "after {signal:?}");
        assert_eq!(folders(data.path()), NOTHING, "after {signal:?}");
        assert_eq!(ways_out(&network).len(), 0, "after {signal:?}");
        leaks::end_egress(&data.path().join("run"));
    }
}

#[test]
fn what_a_killed_drill_left_is_ended_by_the_next() {
    let data = data_with_images();
    let mut killed = Begun::up_to_its_boxes(data.path());
    let network = killed.network();
    assert_eq!(killed.end(Signal::KILL), None, "it has no say in that");
    let [left] = folders(data.path()).try_into().unwrap();
    assert_ne!(traces(data.path()), NOTHING, "host and boxes go on");
    assert_eq!(ways_out(&network).len(), 1, "and so does their way out");
    let mut next = Begun::up_to_its_boxes(data.path());
    let gone = traces(&data.path().join(left));
    assert_eq!(gone, NOTHING, "of the killed drill, once the next attacks");
    next.end(Signal::TERM);
    assert_eq!(traces(data.path()), NOTHING);
    assert_eq!(folders(data.path()), NOTHING);
    assert_eq!(ways_out(&network).len(), 0);
    leaks::end_egress(&data.path().join("run"));
}

const NOTHING: [String; 0] = [];

/// A drill in a network of its own, as words for `unshare`.
fn words<'a>(options: &[&'a str]) -> Vec<&'a str> {
    [
        &["--net", "--", env!("CARGO_BIN_EXE_box"), "drill"],
        options,
    ]
    .concat()
}

fn talk_to(command: &mut Command, data: &Path) {
    command
        .env("BOX_DATA_DIR", data)
        .env("BOX_RUN_DIR", data.join("run"))
        .env("BOX_CONFIG", data.join("config.toml"));
}

/// A data folder of the test's own, so that what is seen in it is of its own drills.
fn data_with_images() -> tempfile::TempDir {
    let seed = seed::ready();
    let data = tempfile::Builder::new()
        .prefix("data-")
        .tempdir_in(seed.parent().unwrap())
        .unwrap();
    seed::copy_images(&seed, data.path());
    data
}

/// A drill whose boxes are under attack. Dropping it ends it.
struct Begun(Child);

impl Begun {
    fn up_to_its_boxes(data: &Path) -> Self {
        let mut command = Command::new("unshare");
        command.args(words(&[])).stdin(Stdio::null());
        talk_to(&mut command, data);
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (told, lines) = mpsc::channel();
        std::thread::spawn(move || {
            // It ends with the drill, or when nobody wants to hear any more.
            let lines = stderr.lines().map_while(Result::ok);
            lines.for_each(|line| drop(told.send(line)));
        });
        let begun = Self(child);
        let mut all = Vec::new();
        loop {
            let line = lines
                .recv_timeout(PART_DEADLINE)
                .unwrap_or_else(|error| panic!("{error} after {all:?}"));
            if line == format!("· {LATE_PROBE}") {
                return begun;
            }
            all.push(line);
        }
    }

    /// The network it made, in which its host and way out run.
    fn network(&self) -> PathBuf {
        fs::read_link(format!("/proc/{}/ns/net", self.0.id())).unwrap()
    }

    /// Its exit code; none when a signal ended it.
    fn end(&mut self, signal: Signal) -> Option<i32> {
        let pidfd = program::pidfd(&self.0);
        kill_process(Pid::from_child(&self.0), signal).unwrap();
        assert!(
            program::ends_within(&pidfd, PART_DEADLINE),
            "still there after {signal:?}"
        );
        self.0.wait().unwrap().code()
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if self.0.try_wait().is_ok_and(|ended| ended.is_none()) {
            self.end(Signal::TERM);
        }
    }
}

/// Folders of drills.
fn folders(data: &Path) -> Vec<String> {
    let names = fs::read_dir(data).unwrap().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("drill-")).collect()
}

/// Processes that were told of the folder, or have a piece of it mounted, but for this one: hosts,
/// their helpers, boxes.
fn traces(folder: &Path) -> Vec<String> {
    let name = folder.file_name().unwrap().to_str().unwrap();
    processes(|pid| pid != std::process::id())
        .into_iter()
        .filter_map(|pid| {
            let read = |file: &str| {
                let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
                String::from_utf8_lossy(&bytes).into_owned()
            };
            let met = read("environ").contains(name) || read("mountinfo").contains(name);
            met.then(|| format!("{pid} {}", read("comm").trim()))
        })
        .collect()
}

/// Every box-egress in a network.
fn ways_out(network: &Path) -> Vec<u32> {
    processes(|pid| {
        let net = fs::read_link(format!("/proc/{pid}/ns/net"));
        if net.is_ok_and(|net| net != network) {
            return false;
        }
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == b"egress")
    })
}

fn processes(are: impl Fn(u32) -> bool) -> Vec<u32> {
    let numbers = fs::read_dir("/proc").unwrap().flatten();
    let pids = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| are(*pid)).collect()
}
