//! `box park`: threads of a box wait until a time.

use super::{Ended, Print, amount};
use crate::age;
use crate::client::unexpected;
use crate::host::{self, OtherBuild};
use crate::output::Format;
use box_api::control::{Outcome, Park, Parked, Request};
use box_api::{BoxName, ThreadId};
use std::time::UNIX_EPOCH;

/// Let the threads of a box wait until a time
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box park demo --until 2h\n  \
    box park demo --until 2026-12-01T09:00:00Z\n  \
    box park demo/2tq5k4xw7m3na6cz\n\n\
    A turn that runs is not touched; nothing begins after it before the time, or before\n\
    `box resume demo`. A usage limit parks a thread by itself.")]
pub(super) struct Args {
    /// A box, or one thread of it
    #[arg(value_name = "NAME[/THREAD]", value_parser = place)]
    place: Place,
    /// How long, or when (UTC); until it is resumed if not said
    #[arg(long, value_name = "TIME", value_parser = until)]
    until: Option<Until>,
    #[command(flatten)]
    pub(super) print: Print,
}

/// A box, or one thread of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) name: BoxName,
    pub(super) thread: Option<ThreadId>,
}

/// # Errors
/// What is wrong with the name or the thread.
pub(super) fn place(text: &str) -> Result<Place, String> {
    let (name, thread) = match text.split_once('/') {
        Some((name, thread)) => (name, Some(thread)),
        None => (text, None),
    };
    let thread = thread.map(|id| ThreadId::parse(id).map_err(|error| error.to_string()));
    Ok(Place {
        name: BoxName::parse(name).map_err(|error| error.to_string())?,
        thread: thread.transpose()?,
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    AfterMs(u64),
    AtMs(i64),
}

impl Until {
    fn at_ms(self, now_ms: i64) -> i64 {
        match self {
            Self::AfterMs(ms) => now_ms.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX)),
            Self::AtMs(at_ms) => at_ms,
        }
    }
}

fn until(text: &str) -> Result<Until, String> {
    if let Ok(ms) = amount::span_ms(text) {
        return Ok(Until::AfterMs(ms));
    }
    let at = humantime::parse_rfc3339_weak(text).ok();
    let since = at.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let ms = since.and_then(|since| i64::try_from(since.as_millis()).ok());
    ms.map(Until::AtMs)
        .ok_or_else(|| "a time is like `90m`, or like `2026-12-01T09:00:00Z`".to_owned())
}

pub(super) fn run(args: Args) -> Ended {
    let mut output = args.print.output();
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let Place { name, thread } = args.place;
    let request = Request::Park(Park {
        name,
        thread,
        until_ms: args.until.map(|until| until.at_ms(age::now_ms())),
    });
    let outcome = client.ask(&mut output, &request)?;
    let Outcome::Parking { threads } = &outcome else {
        return Err(unexpected(&outcome));
    };
    match output.format() {
        Format::Json => output.object(&outcome)?,
        Format::Text => threads.iter().for_each(|parked| output.note(&told(parked))),
    }
    Ok(0)
}

fn told(parked: &Parked) -> String {
    let thread = parked.thread;
    match parked.until_ms {
        Some(at_ms) => format!("thread {thread} is parked until {}", shown(at_ms)),
        None => format!("thread {thread} is parked until it is resumed"),
    }
}

/// To the second, UTC.
fn shown(at_ms: i64) -> String {
    let since = std::time::Duration::from_millis(u64::try_from(at_ms).unwrap_or_default());
    UNIX_EPOCH.checked_add(since).map_or_else(
        || "the end of time".to_owned(),
        |at| humantime::format_rfc3339_seconds(at).to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_named_behind_its_box() {
        let whole = place("demo").unwrap();
        assert_eq!((whole.name.as_str(), whole.thread), ("demo", None));
        let one = place("demo/aaaaaaaaaaaaaaaa").unwrap();
        assert_eq!(one.thread.unwrap().as_str(), "aaaaaaaaaaaaaaaa");
        assert!(place("demo/").is_err());
        assert!(place("Demo").is_err());
    }

    #[test]
    fn a_time_is_a_span_or_a_moment() {
        assert_eq!(until("90m"), Ok(Until::AfterMs(5_400_000)));
        assert_eq!(Until::AfterMs(5).at_ms(7), 12);
        assert_eq!(
            until("2026-11-29T14:36:35Z"),
            Ok(Until::AtMs(1_795_962_995_000))
        );
        assert_eq!(
            until("2026-11-29 14:36:35"),
            Ok(Until::AtMs(1_795_962_995_000))
        );
        assert!(until("tomorrow").is_err());
        assert_eq!(shown(1_795_962_995_000), "2026-11-29T14:36:35Z");
    }
}
