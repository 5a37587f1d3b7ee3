//! `bench exec`: from asking for a command in a running machine to the command's first act.

use super::host::Host;
use super::peers::{DOCKER_HARDENING, docker, peer, spawn};
use super::rows::Rows;
use super::stage::{Stage, size};
use anyhow::{Result, bail};
use std::process::Command;

const ROUNDS: usize = 100;

pub(super) fn run() -> Result<Rows> {
    let stage = Stage::set_up()?;
    let host = Host::start(&stage, "host", "")?;
    host.start_box("exec-bench")?;
    let mut contestants = vec![
        peer("plain spawn", "no isolation", spawn(&stage)),
        host.exec_over_the_socket("exec-bench"),
        host.exec_command("exec-bench"),
        peer("docker exec", "", docker_exec(&stage)?),
    ];
    Rows::measure(size().of(ROUNDS, 2), &mut contestants)
}

fn docker_exec(stage: &Stage) -> Result<impl FnMut() -> Command + 'static> {
    let mut started = docker(stage);
    started
        .args(["run", "--detach", "--name", "exec-bench"])
        .args(DOCKER_HARDENING);
    let started = started.args(["box-bench", "/clock", "wait"]).output()?;
    if !started.status.success() {
        bail!("docker run: {}", String::from_utf8_lossy(&started.stderr));
    }
    let client = Stage::docker_client();
    let address = stage.docker_address();
    Ok(move || {
        let mut command = Command::new(&client);
        command.args(["--host", &address, "exec", "exec-bench", "/clock", "now"]);
        command
    })
}
