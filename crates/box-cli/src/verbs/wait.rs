//! `box wait`: until a box is stopped, runs or is idle.

use super::{Ended, Print, amount};
use crate::client::unexpected;
use crate::host::{self, OtherBuild};
use crate::output::Format;
use box_api::BoxName;
use box_api::control::{Awaited, Outcome, Request, WAIT_MS_MAX};
use clap::ValueEnum;
use std::time::{Duration, Instant};

/// Wait until a box is stopped, runs or is idle
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box wait demo\n  \
    box wait demo --for idle --timeout 10m\n\n\
    Idle is a box in which no agent works or asks. Exit code 1 when the time is over first.")]
pub(super) struct Args {
    #[arg(value_name = "NAME", value_parser = BoxName::parse)]
    name: BoxName,
    /// What to wait for: `stopped`, `running` or `idle`
    #[arg(
        long = "for",
        value_name = "STATE",
        value_enum,
        default_value = "stopped",
        hide_possible_values = true
    )]
    until: Until,
    /// The longest to wait, such as `90s` or `10m`; for ever if not said
    #[arg(long, value_name = "TIME", value_parser = amount::span_ms)]
    timeout: Option<u64>,
    #[command(flatten)]
    pub(super) print: Print,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Until {
    Stopped,
    Running,
    Idle,
}

pub(super) fn run(args: &Args) -> Ended {
    let mut output = args.print.output();
    let deadline = args
        .timeout
        .map(|timeout| Instant::now() + Duration::from_millis(timeout));
    let (until, words) = match args.until {
        Until::Stopped => (Awaited::Stopped, "stopped"),
        Until::Running => (Awaited::Running, "running"),
        Until::Idle => (Awaited::Idle, "idle"),
    };
    output.progress(&format!("waiting until box `{}` is {words}", args.name));
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let left_ms = left.and_then(|left| u64::try_from(left.as_millis()).ok());
        let timeout_ms = left_ms.unwrap_or(WAIT_MS_MAX).min(WAIT_MS_MAX);
        let client = host::reach(&mut output, OtherBuild::Bear)?;
        let request = Request::Wait {
            name: args.name.clone(),
            until,
            timeout_ms,
        };
        let outcome = client.ask(&mut output, &request)?;
        let Outcome::Waited { reached } = outcome else {
            return Err(unexpected(&outcome));
        };
        let over = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if !reached && !over {
            continue;
        }
        match output.format() {
            Format::Json => output.object(&outcome)?,
            Format::Text if reached => output.note(&format!("box `{}` is {words}", args.name)),
            Format::Text => output.note(&format!("box `{}` is not {words} yet", args.name)),
        }
        return Ok(u8::from(!reached));
    }
}
