//! `box status`: whether a host runs, and what runs on it. Starts none.

use super::{Ended, Print};
use crate::age;
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host;
use crate::output::{Format, table};
use box_api::control::{Outcome, Request};

/// Show the host
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  box status\n  box status --json\n\nExit code 1: no host runs."
)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: &Args) -> Ended {
    let mut output = args.print.output();
    let Some(client) = host::find()? else {
        return Err(Complaint::failed("no-host", "no host runs here").hinted("`box up` starts it"));
    };
    let started_at_ms = client.welcome.started_at_ms;
    let outcome = client.ask(&mut output, &Request::Status)?;
    let Outcome::Status(status) = outcome else {
        return Err(unexpected(&outcome));
    };
    if output.format() == Format::Json {
        output.object(&status)?;
        return Ok(0);
    }
    let egress = if status.egress {
        "open"
    } else {
        "down: boxes reach nothing"
    };
    let rows = [
        (
            "host",
            format!(
                "process {}, for {}",
                status.pid,
                age::short(started_at_ms, age::now_ms())
            ),
        ),
        ("build", status.build),
        ("data", status.data_dir),
        (
            "boxes",
            match status.boxes_ahead {
                0 => format!(
                    "{} running, {} stopped",
                    status.boxes_running, status.boxes_stopped
                ),
                ahead => format!(
                    "{} running, {} stopped; {ahead} begun ahead",
                    status.boxes_running, status.boxes_stopped
                ),
            },
        ),
        ("way out", egress.to_owned()),
    ];
    let rows = rows.map(|(key, value)| vec![key.to_owned(), value]);
    output.data(table::columns(&rows).as_bytes())?;
    Ok(0)
}
