//! `box logs`: what a box's durable process wrote.

use super::{Ended, Print};
use crate::client::unexpected;
use crate::complaint::Complaint;
use crate::host::{self, OtherBuild};
use crate::output::{Format, visible};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use box_api::BoxName;
use box_api::control::{Logs, Reply, Request};
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

/// What was written is there at once.
const SILENCE_MAX: Duration = Duration::from_mins(1);

/// Show what a box's agent process wrote
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  box logs demo\n  box logs demo --follow")]
pub(super) struct Args {
    #[arg(value_name = "NAME", value_parser = BoxName::parse)]
    name: BoxName,
    /// Which process; the newest if not said
    #[arg(value_name = "PROCESS")]
    process: Option<String>,
    /// Go on as it writes
    #[arg(long, short)]
    follow: bool,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: Args) -> Ended {
    let mut output = args.print.output();
    let to_a_person = std::io::stdout().is_terminal();
    let mut client = host::reach(&mut output, OtherBuild::Bear)?;
    let follow = args.follow;
    client.request(&Request::Logs(Logs {
        name: args.name,
        process: args.process,
        follow,
    }))?;
    loop {
        let deadline = (!follow).then(|| Instant::now() + SILENCE_MAX);
        let reply = client.next(deadline)?;
        match &reply {
            Reply::Output { .. } if output.format() == Format::Json => output.object(&reply)?,
            Reply::Output { base64 } => {
                let bytes = STANDARD.decode(base64).map_err(|error| {
                    Complaint::engine("host-garbled", "the host sent output that is no base64")
                        .caused_by(error)
                })?;
                // What a box wrote must not steer the terminal; a file gets it as it is.
                if to_a_person {
                    output.data(visible(&String::from_utf8_lossy(&bytes)).as_bytes())?;
                } else {
                    output.data(&bytes)?;
                }
            }
            Reply::Progress { text } => output.progress(text),
            Reply::Note { text } => output.note(text),
            Reply::Done(_) => return Ok(0),
            Reply::Problem(problem) => return Err(problem.clone().into()),
            Reply::Streams
            | Reply::Thread { .. }
            | Reply::Update(_)
            | Reply::Decision(_)
            | Reply::Net(_)
            | Reply::AnswerRefused { .. } => {
                return Err(unexpected(&reply));
            }
        }
    }
}
