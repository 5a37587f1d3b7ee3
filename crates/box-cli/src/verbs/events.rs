//! `box events`: what befell a box.

use super::{Ended, Print};
use crate::age;
use crate::client::unexpected;
use crate::host::{self, OtherBuild};
use crate::output::{Format, table, visible};
use box_api::BoxName;
use box_api::control::{BoxEvent, EventKind, Outcome, Request};

/// Show what befell a box: memory, disk, deadline, freezes, signals
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  box events demo\n  box events demo --json")]
pub(super) struct Args {
    #[arg(value_name = "NAME", value_parser = BoxName::parse)]
    name: BoxName,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: &Args) -> Ended {
    let mut output = args.print.output();
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let request = Request::Events {
        name: args.name.clone(),
    };
    let outcome = client.ask(&mut output, &request)?;
    let Outcome::Events { events } = outcome else {
        return Err(unexpected(&outcome));
    };
    if output.format() == Format::Json {
        output.object(&events)?;
    } else if events.is_empty() {
        output.note(&format!("nothing befell box `{}`", args.name));
    } else {
        output.data(shown(&events, age::now_ms()).as_bytes())?;
    }
    Ok(0)
}

fn shown(events: &[BoxEvent], now_ms: i64) -> String {
    let rows = events.iter().map(|event| {
        vec![
            format!("{} ago", age::short(event.at_ms, now_ms)),
            word(event.kind).to_owned(),
            visible(&event.text).into_owned(),
        ]
    });
    table::columns(&rows.collect::<Vec<_>>())
}

/// One event in one line, for `box info`.
pub(super) fn line(event: &BoxEvent, now_ms: i64) -> String {
    let ago = age::short(event.at_ms, now_ms);
    format!("{ago} ago, {}: {}", word(event.kind), event.text)
}

fn word(kind: EventKind) -> &'static str {
    match kind {
        EventKind::OutOfMemory => "out of memory",
        EventKind::OutOfProcesses => "out of processes",
        EventKind::DiskFull => "disk full",
        EventKind::DiskRoom => "room on disk",
        EventKind::Deadline => "deadline",
        EventKind::Frozen => "frozen",
        EventKind::Thawed => "thawed",
        EventKind::Ended => "ended",
        EventKind::Signal => "signal",
        EventKind::Credential => "credential",
        EventKind::Private => "private address",
        EventKind::Budget => "budget",
        EventKind::Other => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_a_line_a_person_can_read() {
        let event = BoxEvent {
            at_ms: 0,
            kind: EventKind::OutOfMemory,
            text: "1 process was killed: all of its 4 GiB of memory was in use\x1b[31m".to_owned(),
        };
        let shown = shown(std::slice::from_ref(&event), 120_000);
        assert!(
            shown.starts_with("2m ago  out of memory  1 process was killed"),
            "{shown}"
        );
        assert!(!shown.contains('\x1b'), "{shown}");
        assert!(line(&event, 120_000).starts_with("2m ago, out of memory: 1 process"));
    }
}
