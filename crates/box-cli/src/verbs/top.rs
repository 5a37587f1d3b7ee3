//! `box top`: what boxes use, again and again on a terminal.

use super::{Ended, Print, amount, list};
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::{Format, Output, is_dumb, table};
use crate::signals::Signals;
use box_api::control::{BoxUsage, Outcome, Request};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io::IsTerminal as _;

/// Between two tables; the host itself takes half a second for each.
const PAUSE: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 500_000_000,
};
/// Cursor to the corner, and everything below it away (ECMA-48).
const CLEAR: &str = "\x1b[H\x1b[J";
/// SIGINT and SIGTERM: they end the display, which is no failure.
const ENDS: [i32; 2] = [2, 15];

/// Show what your boxes use
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  box top\n  box top --once\n  box top --json\n\n\
    On a terminal it goes on until Ctrl-C. CPU is in percent of one CPU; memory is without files\n\
    the kernel keeps only because nobody else needs the room."
)]
pub(super) struct Args {
    /// One table, then end
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: &Args) -> Ended {
    let mut output = args.print.output();
    let stays = std::io::stdout().is_terminal() && !is_dumb();
    if args.once || output.format() == Format::Json || !stays {
        let boxes = ask(&mut output)?;
        show(&mut output, &boxes, "")?;
        return Ok(0);
    }
    let signals = Signals::catch(&ENDS).map_err(|error| {
        Complaint::engine("signals", "could not listen for Ctrl-C").caused_by(error)
    })?;
    loop {
        let boxes = ask(&mut output)?;
        show(&mut output, &boxes, CLEAR)?;
        if ended(&signals) {
            return Ok(0);
        }
    }
}

/// Waits for the next table, or for a signal.
fn ended(signals: &Signals) -> bool {
    let mut waited = [PollFd::new(signals, PollFlags::IN)];
    match poll(&mut waited, Some(&PAUSE)) {
        Ok(0) => false,
        Ok(_) | Err(Errno::INTR) => !signals.take().is_empty(),
        Err(_) => true,
    }
}

fn ask(output: &mut Output) -> Result<Vec<BoxUsage>, Complaint> {
    let client = host::reach(output, OtherBuild::Bear)?;
    let outcome = client.ask(output, &Request::Top)?;
    let Outcome::Usage { boxes } = outcome else {
        return Err(unexpected(&outcome));
    };
    Ok(boxes)
}

fn show(output: &mut Output, boxes: &[BoxUsage], before: &str) -> Result<(), Complaint> {
    if output.format() == Format::Json {
        return output.object(&boxes);
    }
    if boxes.is_empty() && before.is_empty() {
        output.note("no boxes yet; `box new demo` makes one");
        return Ok(());
    }
    output.data(format!("{before}{}", shown(boxes)).as_bytes())
}

fn shown(boxes: &[BoxUsage]) -> String {
    let heading = [
        "NAME",
        "STATE",
        "CPU %",
        "OF",
        "MEMORY",
        "OF",
        "PROCESSES",
        "OF",
        "SENT/s",
        "RECEIVED/s",
        "SENT",
        "RECEIVED",
    ];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(boxes.iter().map(|one| {
        let limits = one.limits;
        let used = |show: fn(&box_api::control::Used) -> String| {
            one.used.as_ref().map_or_else(|| "-".to_owned(), show)
        };
        let state = match one.used {
            Some(used) if used.frozen => list::FROZEN,
            Some(_) | None => list::state(one.state),
        };
        vec![
            one.name.to_string(),
            state.to_owned(),
            used(|used| format!("{}.{}", used.cpu_milli / 10, used.cpu_milli % 10)),
            format!("{} CPUs", amount::shown_cpus(limits.cpu_milli)),
            used(|used| table::bytes(used.memory_bytes)),
            table::binary_bytes(limits.memory_bytes),
            used(|used| used.processes.to_string()),
            limits.pids.to_string(),
            used(|used| table::bytes(used.net.sent_per_second)),
            used(|used| table::bytes(used.net.received_per_second)),
            used(|used| table::bytes(used.net.sent_bytes)),
            used(|used| table::bytes(used.net.received_bytes)),
        ]
    }));
    table::columns(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use box_api::control::{BoxState, Limits, Traffic, Used};
    use box_api::{BoxId, BoxName};

    #[test]
    fn a_box_that_does_not_run_uses_nothing() {
        let one = |name: &str, state, used| BoxUsage {
            id: BoxId::from_random([1; 10]),
            name: BoxName::parse(name).unwrap(),
            state,
            limits: Limits::default(),
            used,
        };
        let used = Used {
            cpu_us: 9,
            cpu_milli: 1234,
            memory_bytes: 20_000_000,
            processes: 7,
            frozen: false,
            net: Traffic {
                sent_bytes: 1_500_000,
                received_bytes: 20_000_000,
                sent_per_second: 200,
                received_per_second: 3000,
                open: 2,
            },
        };
        let still = Used {
            frozen: true,
            ..used
        };
        let boxes = [
            one("works", BoxState::Running, Some(used)),
            one("sleeps", BoxState::Running, Some(still)),
            one("rests", BoxState::Stopped, None),
        ];
        insta::assert_snapshot!(shown(&boxes));
    }
}
