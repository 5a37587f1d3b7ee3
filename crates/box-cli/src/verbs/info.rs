//! `box info`: all there is to know about one box.

use super::{Ended, Print, list};
use crate::age;
use crate::client::unexpected;
use crate::host::{self, OtherBuild};
use crate::output::{Format, table, visible};
use box_api::BoxName;
use box_api::control::{BoxInfo, Outcome, Request};

/// Show one box
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  box info demo\n  box info demo --json")]
pub(super) struct Args {
    #[arg(value_name = "NAME", value_parser = BoxName::parse)]
    name: BoxName,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: Args) -> Ended {
    let mut output = args.print.output();
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let outcome = client.ask(&mut output, &Request::Info { name: args.name })?;
    let Outcome::Info(info) = outcome else {
        return Err(unexpected(&outcome));
    };
    if output.format() == Format::Json {
        output.object(&info)?;
    } else {
        output.data(shown(&info, age::now_ms()).as_bytes())?;
    }
    Ok(0)
}

fn shown(info: &BoxInfo, now_ms: i64) -> String {
    let limits = info.limits;
    let cpus = format!(
        "{}.{}",
        limits.cpu_milli / 1000,
        limits.cpu_milli % 1000 / 100
    );
    let limits = format!(
        "{} CPUs, {} memory, {} disk, {} processes ({})",
        cpus.trim_end_matches(".0"),
        table::binary_bytes(limits.memory_bytes),
        table::binary_bytes(limits.disk_bytes),
        limits.pids,
        info.limits_held_by
    );
    let mut rows = vec![
        ("name", info.name.to_string()),
        (
            "title",
            info.title
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
        ),
        ("state", list::state(info.state).to_owned()),
        ("problem", info.problem.clone().unwrap_or_default()),
        ("image", info.image.clone()),
        ("profile", list::profile(info.profile).to_owned()),
        ("net", list::net(info.net).to_owned()),
        ("limits", limits),
        ("engine", info.runtime.clone()),
        (
            "made",
            format!("{} ago", age::short(info.created_at_ms, now_ms)),
        ),
        ("workspace", info.workspace.clone().unwrap_or_default()),
        (
            "pid",
            info.pid.map(|pid| pid.to_string()).unwrap_or_default(),
        ),
        ("owner", info.owner.to_string()),
        ("id", info.id.to_string()),
    ];
    rows.extend(info.threads.iter().map(|thread| {
        let state = list::thread_state(thread.state);
        (
            "thread",
            format!(
                "{}  {}, {state}: {}",
                thread.thread, thread.agent, thread.title
            ),
        )
    }));
    let rows = rows.into_iter().filter(|(_, value)| !value.is_empty());
    let rows: Vec<Vec<String>> = rows
        .map(|(key, value)| vec![key.to_owned(), visible(&value).into_owned()])
        .collect();
    table::columns(&rows)
}
