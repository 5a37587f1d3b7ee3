//! `box ps`: what runs in a box.

use super::{Ended, Print};
use crate::age;
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::inside::{Inside, TOOL};
use crate::output::table::columns;
use crate::output::{Format, Output, visible};
use box_api::BoxName;
use box_api::control::{Outcome, ProcessInfo, ProcessKind, ProcessState, Request};
use serde::{Deserialize, Serialize};
use std::io::{BufRead as _, BufReader, Read as _};

/// A box's list of processes is read up to here.
const LIST_BYTES_MAX: u64 = 32 << 20;
const COMMAND_CHARS_MAX: usize = 80;

/// Show the durable processes of a box
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box ps demo\n  \
    box ps demo --all\n\n\
    Durable are those of `box exec --detach` and of agents. `box logs <box> <process>` shows what one\n\
    wrote, `box kill <box> <process>` ends it.")]
pub(super) struct Args {
    #[arg(value_name = "NAME", value_parser = BoxName::parse)]
    name: BoxName,
    /// Every process the box itself sees
    #[arg(long, short)]
    all: bool,
    #[command(flatten)]
    pub(super) print: Print,
}

/// A process as the box sees it, which may be anything.
#[derive(Debug, Serialize, Deserialize)]
struct Seen {
    pid: u32,
    parent: u32,
    state: String,
    command: String,
}

pub(super) fn run(args: &Args) -> Ended {
    let mut output = args.print.output();
    if args.all {
        everything(&mut output, &args.name)?;
        return Ok(0);
    }
    let request = Request::Processes {
        name: args.name.clone(),
    };
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let outcome = client.ask(&mut output, &request)?;
    let Outcome::Processes { processes, inside } = &outcome else {
        return Err(unexpected(&outcome));
    };
    if output.format() == Format::Json {
        output.object(&outcome)?;
        return Ok(0);
    }
    let name = &args.name;
    if processes.is_empty() {
        output.note(&format!("box `{name}` has no durable process"));
    } else {
        let now = age::now_ms();
        let head = ["PROCESS", "STATE", "PID", "SINCE", "COMMAND"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        rows.extend(processes.iter().map(|one| row(one, now)));
        output.data(columns(&rows).as_bytes())?;
    }
    if let Some(count) = inside {
        output.note(&format!(
            "{count} run inside in all; `box ps {name} --all` lists them"
        ));
    }
    Ok(0)
}

fn row(one: &ProcessInfo, now_ms: i64) -> Vec<String> {
    let state = match one.state {
        ProcessState::Running => "running".to_owned(),
        ProcessState::Ended { code: Some(code) } => format!("ended, code {code}"),
        ProcessState::Ended { code: None } => "ended with its box".to_owned(),
    };
    let command = match one.kind {
        ProcessKind::Agent => "(an agent)".to_owned(),
        ProcessKind::Detached => shown(&one.command.join(" ")),
    };
    let since = one.ended_at_ms.or(one.started_at_ms);
    let pid = one.pid.map(|pid| pid.to_string());
    vec![
        one.process.clone(),
        state,
        pid.unwrap_or_else(|| "–".to_owned()),
        since.map_or_else(|| "–".to_owned(), |since| age::short(since, now_ms)),
        command,
    ]
}

fn shown(text: &str) -> String {
    let plain = text.replace(['\n', '\t'], " ");
    visible(&plain).chars().take(COMMAND_CHARS_MAX).collect()
}

fn everything(output: &mut Output, name: &BoxName) -> Result<(), Complaint> {
    let mut inside = Inside::start(output, name, &[TOOL, "ps"])?;
    let mut seen: Vec<Seen> = Vec::new();
    if let Some(stdout) = inside.stdout() {
        let lines = BufReader::new(stdout.take(LIST_BYTES_MAX)).lines();
        let lines = lines.map_while(Result::ok);
        seen.extend(lines.filter_map(|line| serde_json::from_str(&line).ok()));
    }
    let title = format!("could not list the processes of box `{name}`");
    inside.finish()?.or_else("no-list", &title)?;
    if output.format() == Format::Json {
        return output.object(&seen);
    }
    let head = ["PID", "PARENT", "STATE", "COMMAND"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(seen.iter().map(|one| {
        let numbers = [one.pid.to_string(), one.parent.to_string()];
        let texts = [shown(&one.state), shown(&one.command)];
        numbers.into_iter().chain(texts).collect()
    }));
    output.data(columns(&rows).as_bytes())
}
