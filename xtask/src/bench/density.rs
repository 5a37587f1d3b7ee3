//! `bench density`: many boxes that do nothing, one made after the other's answer, all up with their
//! way out. What each takes of the machine's memory, kernel's and programs' together, and how long the
//! last ones take to start beside the first.

use super::Form;
use super::host::Host;
use super::peers::{DOCKER_HARDENING, docker};
use super::stage::{self, Stage, clock_ns, size};
use anyhow::{Context as _, Result, bail};
use std::process::{Child, Command, Stdio};

/// How many of each.
const FEW: usize = 100;
const MANY: usize = 1000;
/// Docker takes a third of a second for each.
const DOCKERS: usize = 20;
/// First and last starts that a median is taken of.
const ENDS: usize = 10;

/// What was found of one contestant.
struct Figure {
    name: String,
    remark: &'static str,
    boxes: usize,
    /// Memory in use after less before, for each.
    each_kib: u64,
    first_ms: f64,
    last_ms: f64,
    all_s: f64,
    /// Resident memory of the one process that serves them all, where there is one.
    host_mib: Option<u64>,
}

pub(super) fn run(form: Form) -> Result<()> {
    let Some(figures) = stage::in_own_network(measure)? else {
        return Ok(());
    };
    match form {
        Form::Table => print_table(&figures),
        Form::Json => println!("{}", as_json(&figures)),
    }
    Ok(())
}

fn measure() -> Result<Vec<Figure>> {
    let stage = Stage::set_up()?;
    Ok(vec![
        bwraps(&stage, size().of(FEW, 5))?,
        dockers(&stage, size().of(DOCKERS, 2))?,
        boxes(&stage, size().of(FEW, 10))?,
        boxes(&stage, size().of(MANY, 30))?,
    ])
}

/// Makes `count` of something, and takes the figures.
fn figure(
    (name, remark): (String, &'static str),
    count: usize,
    mut one_more: impl FnMut(usize) -> Result<u64>,
) -> Result<Figure> {
    let before = used_kib()?;
    let began_ns = clock_ns();
    let starts: Vec<u64> = (0..count).map(&mut one_more).collect::<Result<_>>()?;
    let all_ns = clock_ns() - began_ns;
    let after = used_kib()?;
    let ends = ENDS.min(count);
    Ok(Figure {
        name,
        remark,
        boxes: count,
        each_kib: after.saturating_sub(before) / count.max(1) as u64,
        first_ms: median_ms(&starts[..ends]),
        last_ms: median_ms(&starts[count - ends..]),
        all_s: milliseconds(all_ns) / 1000.0,
        host_mib: None,
    })
}

fn boxes(stage: &Stage, count: usize) -> Result<Figure> {
    let host = Host::start(stage, &format!("density-{count}"), "")?;
    // The default image is looked at for the first time, the way out comes up.
    host.one_more("first")?;
    let named = (format!("product, {count} boxes"), "limits, filter, way out");
    let mut figure = figure(named, count, |number| {
        host.one_more(&format!("bench-{number}"))
    })?;
    let pid = host.status()?["pid"].as_u64().context("no pid")?;
    figure.host_mib = Some(resident_kib(pid)? >> 10);
    Ok(figure)
}

fn dockers(stage: &Stage, count: usize) -> Result<Figure> {
    let named = ("docker run".to_owned(), "network none, same limits");
    figure(named, count, |number| {
        let before_ns = clock_ns();
        let name = format!("density-{number}");
        let mut command = docker(stage);
        command.args(["run", "--detach", "--name", &name]);
        command.args(DOCKER_HARDENING);
        let started = command.args(["box-bench", "/clock", "wait"]).output()?;
        if !started.status.success() {
            bail!("docker run: {}", String::from_utf8_lossy(&started.stderr));
        }
        Ok(clock_ns() - before_ns)
    })
}

/// Each with its process, which ends with this.
struct Waiting(Vec<Child>);

impl Drop for Waiting {
    fn drop(&mut self) {
        for child in &mut self.0 {
            if let Err(error) = child.kill().and_then(|()| child.wait()) {
                eprintln!("bwrap: {error}");
            }
        }
    }
}

fn bwraps(stage: &Stage, count: usize) -> Result<Figure> {
    let mut waiting = Waiting(Vec::new());
    let named = ("bwrap".to_owned(), "no seccomp, no cgroup, no way out");
    figure(named, count, |_| {
        let before_ns = clock_ns();
        let child = Command::new("bwrap")
            .args(["--unshare-all", "--die-with-parent", "--cap-drop", "ALL"])
            .arg("--ro-bind")
            .arg(stage.root_dir())
            .args(["/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"])
            .args(["/clock", "wait"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .context("could not start `bwrap`")?;
        waiting.0.push(child);
        Ok(clock_ns() - before_ns)
    })
}

/// As free(1) has it: neither free, nor kept only because nobody needs the space.
fn used_kib() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/meminfo")?;
    let field = |name: &str| -> Result<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.trim_start_matches(':').split_whitespace().next());
        number
            .and_then(|number| number.parse().ok())
            .with_context(|| format!("`{name}` is not in /proc/meminfo"))
    };
    let kept = field("MemFree")? + field("Buffers")? + field("Cached")? + field("SReclaimable")?;
    Ok((field("MemTotal")? + field("Shmem")?).saturating_sub(kept))
}

fn resident_kib(pid: u64) -> Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.context("the host's resident memory is not told")
}

fn median_ms(starts_ns: &[u64]) -> f64 {
    let mut sorted = starts_ns.to_vec();
    sorted.sort_unstable();
    milliseconds(sorted.get(sorted.len() / 2).copied().unwrap_or_default())
}

#[expect(
    clippy::cast_precision_loss,
    reason = "milliseconds for a person; 52 bits are plenty"
)]
fn milliseconds(ns: u64) -> f64 {
    ns as f64 / 1e6
}

fn print_table(figures: &[Figure]) {
    println!(
        "{:<24} {:>6} {:>10} {:>9} {:>9} {:>8} {:>9}  remark",
        "row", "boxes", "KiB each", "first ms", "last ms", "all s", "host MiB"
    );
    for figure in figures {
        let host = figure.host_mib.map(|mib| mib.to_string());
        println!(
            "{:<24} {:>6} {:>10} {:>9.2} {:>9.2} {:>8.2} {:>9}  {}",
            figure.name,
            figure.boxes,
            figure.each_kib,
            figure.first_ms,
            figure.last_ms,
            figure.all_s,
            host.unwrap_or_else(|| "-".to_owned()),
            figure.remark
        );
    }
}

fn as_json(figures: &[Figure]) -> serde_json::Value {
    let rows: Vec<serde_json::Value> = figures
        .iter()
        .map(|figure| {
            serde_json::json!({
                "name": figure.name,
                "boxes": figure.boxes,
                "kib_each": figure.each_kib,
                "first_ms": figure.first_ms,
                "last_ms": figure.last_ms,
                "all_s": figure.all_s,
                "host_mib": figure.host_mib,
                "remark": figure.remark,
            })
        })
        .collect();
    serde_json::json!({ "machine": super::rows::machine(), "rows": rows })
}
