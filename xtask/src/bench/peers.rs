//! The peers: programs that start something isolated, each hardened as far as it can be.
//!
//! All of them run the same static program, which prints the monotonic clock as its first act; a
//! round is the time from just before the start to that reading.

use super::Contestant;
use super::stage::{Stage, clock_ns};
use anyhow::{Context as _, Result, bail};
use serde_json::json;
use std::process::{Command, Stdio};

/// A peer that is one command a round.
pub(crate) struct Peer {
    name: &'static str,
    remark: &'static str,
    command: Box<dyn FnMut() -> Command>,
}

impl Contestant for Peer {
    fn name(&self) -> &'static str {
        self.name
    }

    fn remark(&self) -> &'static str {
        self.remark
    }

    fn round(&mut self) -> Result<u64> {
        let mut command = (self.command)();
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        let before_ns = clock_ns();
        let output = command.output().context("could not be started")?;
        if !output.status.success() {
            bail!(
                "{}: {}",
                output.status,
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        first_act_ns(&output.stdout, before_ns)
    }
}

/// How long after `before_ns` the program printed its clock.
pub(crate) fn first_act_ns(printed: &[u8], before_ns: u64) -> Result<u64> {
    let text = String::from_utf8_lossy(printed);
    let at_ns: u64 = text
        .trim()
        .parse()
        .with_context(|| format!("it printed `{}`", text.trim()))?;
    at_ns
        .checked_sub(before_ns)
        .context("its clock is behind ours")
}

/// Every peer that starts a process of its own for each round.
pub(crate) fn starting(stage: &Stage) -> Result<Vec<Box<dyn Contestant>>> {
    let bundle = stage.bundle("peer", &runtime_config(stage))?;
    Ok(vec![
        peer("plain spawn", "no isolation", spawn(stage)),
        peer("bwrap", "no seccomp, no cgroup, no masks", bwrap(stage)),
        peer(
            "crun",
            "cgroup2 mount hidden from it",
            oci(stage, &["crun"], &bundle),
        ),
        peer("runc", "", oci(stage, &["runc"], &bundle)),
        peer("docker run", "network none, same limits", docker_run(stage)),
    ])
}

pub(crate) fn peer(
    name: &'static str,
    remark: &'static str,
    command: impl FnMut() -> Command + 'static,
) -> Box<dyn Contestant> {
    Box::new(Peer {
        name,
        remark,
        command: Box::new(command),
    })
}

pub(crate) fn spawn(stage: &Stage) -> impl FnMut() -> Command + 'static {
    let program = stage.clock_program();
    move || {
        let mut command = Command::new(&program);
        command.arg("now");
        command
    }
}

fn bwrap(stage: &Stage) -> impl FnMut() -> Command + 'static {
    let root = stage.root_dir();
    move || {
        let mut command = Command::new("bwrap");
        command
            .args([
                "--unshare-all",
                "--uid",
                "1020",
                "--gid",
                "1020",
                "--die-with-parent",
            ])
            .args(["--cap-drop", "ALL", "--new-session", "--ro-bind"])
            .arg(&root)
            .args(["/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"])
            .args(["/clock", "now"]);
        command
    }
}

/// `crun` refuses hybrid cgroups, so it gets a mount namespace without the cgroup2 mount.
fn oci(
    stage: &Stage,
    program: &'static [&'static str],
    bundle: &std::path::Path,
) -> impl FnMut() -> Command + 'static {
    let bundle = bundle.to_path_buf();
    let containers = stage.folder("oci-state");
    let mut round = 0;
    move || {
        round += 1;
        let mut command = Command::new(program[0]);
        command
            .arg("--root")
            .arg(&containers)
            .args(["run", "--bundle"])
            .arg(&bundle)
            .arg(format!("bench-{}-{round}", program[0]));
        command
    }
}

pub(crate) fn docker(stage: &Stage) -> Command {
    let mut command = Command::new(Stage::docker_client());
    command.arg("--host").arg(stage.docker_address());
    command
}

/// The hardening of a locked box, as `docker run` options.
pub(crate) const DOCKER_HARDENING: &[&str] = &[
    "--network",
    "none",
    "--cap-drop",
    "ALL",
    "--security-opt",
    "no-new-privileges",
    "--read-only",
    "--user",
    "1020:1020",
    "--pids-limit",
    "512",
    "--memory",
    "4g",
    "--memory-swap",
    "4g",
    "--cpus",
    "2",
    "--tmpfs",
    "/tmp",
];

fn docker_run(stage: &Stage) -> impl FnMut() -> Command + 'static {
    let client = Stage::docker_client();
    let address = stage.docker_address();
    move || {
        let mut command = Command::new(&client);
        command
            .args(["--host", &address, "run", "--rm"])
            .args(DOCKER_HARDENING)
            .args(["box-bench", "/clock", "now"]);
        command
    }
}

/// An OCI runtime configuration as hard as a locked box, as far as the format goes.
fn runtime_config(stage: &Stage) -> serde_json::Value {
    let id_map = json!([{ "containerID": 0, "hostID": 2_100_000_000u32, "size": 65536 }]);
    let namespaces: Vec<serde_json::Value> = ["pid", "network", "ipc", "uts", "mount", "user"]
        .iter()
        .map(|kind| json!({ "type": kind }))
        .collect();
    json!({
        "ociVersion": "1.0.2",
        "process": {
            "terminal": false,
            "user": { "uid": 1020, "gid": 1020 },
            "args": ["/clock", "now"],
            "env": ["PATH=/"],
            "cwd": "/",
            "capabilities": {
                "bounding": [], "effective": [], "inheritable": [], "permitted": [], "ambient": []
            },
            "rlimits": [{ "type": "RLIMIT_NOFILE", "hard": 1024, "soft": 1024 }],
            "noNewPrivileges": true
        },
        "root": { "path": stage.root_dir(), "readonly": true },
        "hostname": "bench",
        "mounts": [
            { "destination": "/proc", "type": "proc", "source": "proc" },
            { "destination": "/dev", "type": "tmpfs", "source": "tmpfs",
              "options": ["nosuid", "strictatime", "mode=755", "size=65536k"] },
            { "destination": "/tmp", "type": "tmpfs", "source": "tmpfs",
              "options": ["nosuid", "nodev", "size=64m"] }
        ],
        "linux": {
            "uidMappings": id_map, "gidMappings": id_map,
            "namespaces": namespaces,
            "resources": {
                "memory": { "limit": 4u64 << 30 },
                "pids": { "limit": 512 },
                "cpu": { "quota": 200_000, "period": 100_000 }
            },
            "seccomp": Stage::seccomp(),
            "maskedPaths": [
                "/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
                "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi"
            ],
            "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]
        }
    })
}
