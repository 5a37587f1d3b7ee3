//! `box answer`: answers a decision; the first answer wins.

use super::{Ended, Print};
use crate::client::unexpected;
use crate::host::{self, OtherBuild};
use crate::output::Format;
use box_api::DecisionId;
use box_api::control::{Outcome, Request};

/// Answer what `box decisions` lists
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    box answer 12 allow\n  \
    box answer 13 once\n\n\
    An option is its id, its label, or `allow`, `always`, `reject`, `never` for the first of its kind.")]
pub(super) struct Args {
    /// The decision's number
    #[arg(value_name = "NUMBER")]
    decision: i64,
    /// One of its options
    #[arg(value_name = "OPTION")]
    option: String,
    #[command(flatten)]
    pub(super) print: Print,
}

pub(super) fn run(args: Args) -> Ended {
    let mut output = args.print.output();
    let client = host::reach(&mut output, OtherBuild::Bear)?;
    let decision = DecisionId(args.decision);
    let request = Request::Answer {
        decision,
        option: args.option,
    };
    let outcome = client.ask(&mut output, &request)?;
    let Outcome::Nothing = outcome else {
        return Err(unexpected(&outcome));
    };
    if output.format() == Format::Json {
        output.object(&outcome)?;
    } else {
        output.note(&format!("decision {decision} is answered"));
    }
    Ok(0)
}
