//! `box kill`: ends a durable process of a box.

use super::{Ended, Print};
use crate::host::{self, OtherBuild};
use crate::output::Format;
use box_api::BoxName;
use box_api::control::{End, KillProcess, Request};
use rustix::process::Signal;

/// End a durable process of a box
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box kill demo server\n  \
    box kill demo server --now\n  \
    box kill demo server --signal HUP\n\n\
    Asks it to end and kills it, with all it started, when it has not after 10 seconds.")]
pub(super) struct Args {
    #[arg(value_name = "NAME", value_parser = BoxName::parse)]
    name: BoxName,
    /// Which one (`box ps <box>`)
    #[arg(value_name = "PROCESS")]
    process: String,
    /// Do not ask it first
    #[arg(long)]
    now: bool,
    /// Only send it this signal, such as `HUP` or `10`
    #[arg(long, value_name = "SIGNAL", value_parser = signal, conflicts_with = "now")]
    signal: Option<i32>,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: Args) -> Ended {
    let mut output = args.print.output();
    let how = match (args.signal, args.now) {
        (Some(number), _) => End::Signal(number),
        (None, true) => End::Now,
        (None, false) => End::Ask,
    };
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let said = match how {
        End::Signal(number) => format!("process `{}` got signal {number}", args.process),
        End::Ask | End::Now => format!("process `{}` has ended", args.process),
    };
    let request = Request::KillProcess(KillProcess {
        name: args.name,
        process: args.process,
        how,
    });
    let outcome = client.ask(&mut output, &request)?;
    match output.format() {
        Format::Json => output.object(&outcome)?,
        Format::Text => output.note(&said),
    }
    Ok(0)
}

/// signal(7): a name, with or without `SIG`, or a number.
fn signal(text: &str) -> Result<i32, String> {
    let name = text.to_ascii_uppercase();
    let named = match name.trim_start_matches("SIG") {
        "HUP" => Some(Signal::HUP),
        "INT" => Some(Signal::INT),
        "QUIT" => Some(Signal::QUIT),
        "KILL" => Some(Signal::KILL),
        "USR1" => Some(Signal::USR1),
        "USR2" => Some(Signal::USR2),
        "TERM" => Some(Signal::TERM),
        "CONT" => Some(Signal::CONT),
        "STOP" => Some(Signal::STOP),
        "WINCH" => Some(Signal::WINCH),
        _ => None,
    };
    let number = named.map(Signal::as_raw).or_else(|| text.parse().ok());
    number
        .filter(|number| (1..=64).contains(number))
        .ok_or_else(|| "a signal is a name such as `HUP` or a number from 1 to 64".to_owned())
}

#[cfg(test)]
mod tests {
    use super::signal;

    #[test]
    fn signals_have_names_and_numbers() {
        assert_eq!(
            (signal("HUP"), signal("sigterm"), signal("10")),
            (Ok(1), Ok(15), Ok(10))
        );
        assert!(signal("0").is_err() && signal("65").is_err() && signal("WAT").is_err());
    }
}
